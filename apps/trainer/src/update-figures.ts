import { globalNorm, stack, type Tensor } from "@skein/tensor-core";
import type { Parts } from "./train-state.ts";

/** What metrics tell of an update. */
export interface UpdateFigures {
  /**
   * Global L2 norm of the gradient that the optimizer was given: the mean over all ranks, without the scale of the
   * loss, before clipping. With compression: of what the ranks agreed upon in its place.
   */
  readonly gradientNorm: number;
  readonly learningRate: number;
}

/**
 * f32 [2]: gradient norm and learning rate of an update. Traced; the norm is that of clipping, where the job clips:
 * equal nodes are merged.
 *
 * Cost: two flops and one read per parameter.
 */
export const updateFigures = ({ learningRateOf }: Parts, mean: unknown, optimizerState: unknown): Tensor =>
  stack([globalNorm(mean), learningRateOf(optimizerState)]);

/** Figures of no update, in the same shape: no norm is negative. */
export const noUpdate = -1;

/** @returns none for a step without an update. */
export const readFigures = ([gradientNorm, learningRate]: readonly number[]): UpdateFigures | undefined =>
  gradientNorm === noUpdate ? undefined : { gradientNorm: gradientNorm!, learningRate: learningRate! };
