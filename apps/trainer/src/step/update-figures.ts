import { globalNorm, stack, type Tensor } from "@skein/tensor-core";
import { curvatureFigures } from "../building/curvature.ts";
import type { Parts } from "./train-state.ts";

/** Figures of an update in metrics. */
export interface UpdateFigures {
  /**
   * Global L2 norm of the gradient that the optimizer receives: the mean over all ranks, without the loss scale, before
   * clipping. With compression: the norm of the result of the exchange.
   */
  readonly gradientNorm: number;
  readonly learningRate: number;
  /** Share of the gradient that curvature removed, 0 to 1. Absent: the optimizer uses no curvature. */
  readonly curvature?: number;
  /** ν, the factor of preconditioned gradients. Absent: the optimizer uses no curvature. */
  readonly sizeFactor?: number;
}

/**
 * Gradient norm and learning rate of an update, f32 [2]; with curvature figures, f32 [4]. Traced. If the job clips, the
 * norm is the same node as the norm of clipping, because equal nodes are merged.
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

/** Number of values of `updateFigures`. */
export const numUpdateFigures = ({ curvature }: Pick<Parts, "curvature">): number =>
  curvature?.hasFigures === true ? 4 : 2;

/** Value of the figures if no update was made, in the same shape. A norm is never negative. */
export const noUpdate = -1;

/** @returns undefined for a step without an update. */
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
