// Shapes: B batch, T positions, P ranks of the axis, I inputs and O outputs of a matrix. A whole is what one rank would
// have; a rank's part is the i-th of P equal ones.
import {
  allReduce,
  bernoulli,
  foldIn,
  gatherShards,
  multiply,
  ownShard,
  sumToShards,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { dropWhileTraining } from "./layers.ts";
import type { RunContext } from "./model.ts";

// Which gradients come out. Every collective here has its transpose as its gradient: all-gather and reduce-scatter are
// each other's, the all-reduce its own, and a value that is only used on several ranks needs none. A rank's gradients
// are then those of the sum of all ranks' losses by the rank's own copy of a parameter. Where the loss that counts is
// the mean over all ranks, as it is in training, so: divide the gradient of a part by the ranks that it is shared out
// over, and average every gradient over the ranks that hold the same. This holds for losses that are equal on all ranks
// of the axis as for losses that are different, so that nothing is counted P times; it is the rule for experts too.
// Megatron's pair of functions with an identity on one side gives the gradient of one rank's loss instead.

/** How a model's matrices are shared out: by columns into a pair of matrices, by rows out of it. */
export interface TensorParallel {
  /** Mesh axis whose ranks have the same samples, and each a part of the matrices. */
  readonly axis: string;
  /**
   * Whether each rank has T / P positions of what lies between the pairs of matrices, instead of all of them: norms,
   * dropout and residual then take 1/P of the memory and time. As many bytes are sent either way. Default: true.
   */
  readonly sequence?: boolean;
}

/** Dimension of the positions in [B, T, …]. */
const positionsDim = 1;

/** This rank's positions of [B, T, …]. */
export const ownPositions = (x: Tensor, { axis }: TensorParallel): Tensor => ownShard(x, { axis, dim: positionsDim });

/** All positions, of each rank's own. */
export const gatherPositions = (x: Tensor, { axis }: TensorParallel): Tensor =>
  gatherShards(x, { axis, dim: positionsDim });

/**
 * What goes into matrices [I, O / P] of which each rank has columns: all positions on every rank.
 *
 * @param x [B, T / P, I] with `sequence`, else [B, T, I], the same on all ranks.
 * @returns [B, T, I].
 * Cost: with `sequence` an all-gather, in backward a reduce-scatter; else nothing.
 * @example leaveRowParallel(matmul(gelu(matmul(enterColumnParallel(x, tensor), up)), down), tensor);
 * Source: Shoeybi et al. 2019, arXiv 1909.08053; with `sequence` Korthikanti et al. 2022, arXiv 2205.05198.
 */
export const enterColumnParallel = (x: Tensor, tensor: TensorParallel): Tensor =>
  (tensor.sequence ?? true) ? gatherPositions(x, tensor) : x;

/**
 * What comes out of a matrix [I / P, O] of which each rank has rows: the sum over ranks.
 *
 * @param y [B, T, O], each rank's summand.
 * @returns [B, T / P, O] with `sequence`, else [B, T, O], the same on all ranks.
 * Cost: with `sequence` a reduce-scatter, in backward an all-gather; else an all-reduce in both.
 * Source: as `enterColumnParallel`.
 */
export const leaveRowParallel = (y: Tensor, tensor: TensorParallel): Tensor =>
  (tensor.sequence ?? true) ? sumToShards(y, { axis: tensor.axis, dim: positionsDim }) : allReduce(y, tensor.axis);

/**
 * Dropout while training of [B, T / P, …], a rank's own positions: what one rank would drop of them. All ranks of the
 * axis need the same key.
 *
 * Cost: the random numbers of all T positions on every rank.
 */
export const dropOwnPositions = (
  x: Tensor,
  rate: number,
  context: RunContext,
  { use, axis }: { readonly use: number; readonly axis: string },
): Tensor => {
  if (!context.train || rate === 0 || context.key === undefined || axisSize(axis) === 1)
    return dropWhileTraining(x, rate, context, use);
  const whole = x.shape.map((size, at) => (at === positionsDim ? size * axisSize(axis) : size));
  const kept = ownShard(bernoulli(foldIn(context.key, use), 1 - rate, whole), { axis, dim: positionsDim });
  return where(kept, multiply(x, 1 / (1 - rate)), 0);
};
