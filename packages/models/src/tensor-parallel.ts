// Shapes: B batch, T positions, P ranks of the axis, I inputs and O outputs of a matrix. A full tensor is the tensor of
// a single rank without sharding. With sharding, rank i has the i-th of P equal parts.
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

// Gradients. The gradient of each collective here is its transpose: all-gather and reduce-scatter are transposes of
// each other, all-reduce is its own transpose, and a value used on several ranks needs no collective. The gradients on
// a rank are therefore gradients of the sum of all ranks' losses with respect to the rank's own copy of a parameter.
// Training minimizes the mean over all ranks. So the gradient of a sharded parameter is divided by the number of ranks
// that shard it, and every gradient is averaged over the ranks that hold the same values. This holds whether or not the
// losses are equal on all ranks of the axis, so nothing is counted P times. Experts follow the same rule. In contrast,
// Megatron's pair of functions, each of which is the identity in one direction, gives the gradient of one rank's loss.

/**
 * Options of tensor parallelism. In each pair of consecutive matrices, the first matrix is sharded by columns and the
 * second by rows.
 */
export interface TensorParallel {
  /** Mesh axis along which ranks process the same samples, each rank with a shard of the matrices. */
  readonly axis: string;
  /**
   * Whether each rank has T / P positions of the activations between pairs of matrices instead of all T positions.
   * Norms, dropout and residual connections then need 1/P of the memory and time. The number of bytes sent is the same.
   * Default: true.
   */
  readonly sequence?: boolean;
}

/** Index of the position dimension T in [B, T, …]. */
const positionsDim = 1;

/** Returns this rank's positions of [B, T, …]. */
export const ownPositions = (x: Tensor, { axis }: TensorParallel): Tensor => ownShard(x, { axis, dim: positionsDim });

/** Gathers the activations of all positions from the ranks, each of which has T / P positions. */
export const gatherPositions = (x: Tensor, { axis }: TensorParallel): Tensor =>
  gatherShards(x, { axis, dim: positionsDim });

/**
 * Prepares the input of matrices [I, O / P] that are sharded by columns: gathers all positions on every rank.
 *
 * @param x Input. With `sequence`: [B, T / P, I]; without: [B, T, I], equal on all ranks.
 * @returns [B, T, I]. Cost with `sequence`: an all-gather, and a reduce-scatter in the backward pass. Cost without
 * `sequence`: no communication.
 * @example leaveRowParallel(matmul(gelu(matmul(enterColumnParallel(x, tensor), up)), down), tensor);
 * Source: Shoeybi et al. 2019, arXiv 1909.08053; with `sequence` Korthikanti et al. 2022, arXiv 2205.05198.
 */
export const enterColumnParallel = (x: Tensor, tensor: TensorParallel): Tensor =>
  (tensor.sequence ?? true) ? gatherPositions(x, tensor) : x;

/**
 * Sums the outputs of a matrix [I / P, O], which is sharded by rows, over the ranks.
 *
 * @param y Partial sum of this rank, [B, T, O].
 * @returns the sum. With `sequence`: [B, T / P, O]; without: [B, T, O], equal on all ranks. Cost with `sequence`: a
 * reduce-scatter, and an all-gather in the backward pass. Cost without `sequence`: an all-reduce in each pass. Source:
 * see `enterColumnParallel`.
 */
export const leaveRowParallel = (y: Tensor, tensor: TensorParallel): Tensor =>
  (tensor.sequence ?? true) ? sumToShards(y, { axis: tensor.axis, dim: positionsDim }) : allReduce(y, tensor.axis);

/**
 * Applies dropout during training to a rank's own positions, [B, T / P, …]. The dropped values equal those of a single
 * rank without sharding. All ranks of the axis must have the same key.
 *
 * Cost: every rank computes the random numbers of all T positions.
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
