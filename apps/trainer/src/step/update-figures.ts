import { globalNorm, stack, type Tensor } from "@skein/tensor-core";
import { curvatureFigures } from "../building/curvature.ts";
import type { Parts } from "./train-state.ts";

/** What metrics tell of an update. */
export interface UpdateFigures {
  /**
   * Global L2 norm of the gradient that the optimizer was given: the mean over all ranks, without the scale of the
   * loss, before clipping. With compression: of what the ranks agreed upon in its place.
   */
  readonly gradientNorm: number;
  readonly learningRate: number;
  /** With an optimizer that looks at curvature: how much of the gradient it took away, 0 to 1. */
  readonly curvature?: number;
  /** With such an optimizer: ν, by which preconditioned gradients were multiplied. */
  readonly sizeFactor?: number;
}

/**
 * f32 [2]: gradient norm and learning rate of an update; [4] with what curvature did. Traced; the norm is that of
 * clipping, where the job clips: equal nodes are merged.
 *
 * Cost: two flops and one read per parameter.
 * @param before @param after states of the optimizer.
 */
export const updateFigures = (
  { learningRateOf, curvature, sharding }: Parts,
  mean: unknown,
  before: unknown,
  after: unknown,
): Tensor => {
  const figures = curvature?.hasFigures === true ? curvatureFigures(after) : undefined;
  return stack([
    globalNorm(mean, sharding),
    learningRateOf(before),
    ...(figures === undefined ? [] : [figures.curvature, figures.sizeFactor]),
  ]);
};

/** How many `updateFigures` are. */
export const numUpdateFigures = ({ curvature }: Pick<Parts, "curvature">): number =>
  curvature?.hasFigures === true ? 4 : 2;

/** Figures of no update, in the same shape: no norm is negative. */
export const noUpdate = -1;

/** @returns none for a step without an update. */
export const readFigures = ([gradientNorm, learningRate, curvature, sizeFactor]: readonly number[]):
  | UpdateFigures
  | undefined =>
  gradientNorm === noUpdate
    ? undefined
    : {
        gradientNorm: gradientNorm!,
        learningRate: learningRate!,
        ...(curvature !== undefined && { curvature, sizeFactor: sizeFactor! }),
      };
