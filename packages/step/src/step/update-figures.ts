import { globalNorm, stack, type Tensor } from "@skein/tensor-core";
import { curvatureFigures } from "../building/curvature.ts";
import type { Parts } from "./train-state.ts";

/** Metrics of an update. */
export interface UpdateFigures {
  /**
   * Global L2 norm of the gradient that the optimizer receives: the mean over all ranks, without the loss scale, before
   * clipping. With compression: norm of the result of the exchange.
   */
  readonly gradientNorm: number;
  readonly learningRate: number;
  /** Share of the gradient removed by curvature, 0 to 1. Absent: the optimizer uses no curvature. */
  readonly curvature?: number;
  /** Scale factor ν of preconditioned gradients. Absent: the optimizer uses no curvature. */
  readonly sizeFactor?: number;
}

/**
 * Computes the gradient norm and learning rate of an update, f32 [2]; with the metrics of curvature, f32 [4]. Traced.
 * If the job also clips gradients, the norm is computed only once, because the compiler merges equal nodes.
 *
 * Cost: two flops and one read per parameter.
 * @param before State of the optimizer before the update.
 * @param after State of the optimizer after the update.
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

/** Returns the number of values that `updateFigures` returns. */
export const numUpdateFigures = ({ curvature }: Pick<Parts, "curvature">): number =>
  curvature?.hasFigures === true ? 4 : 2;

/** Value of each metric if no update was made. Distinguishable from a norm, which is never negative. */
export const noUpdate = -1;

/** Converts the values of `updateFigures` to an object. @returns undefined for a step without an update. */
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
