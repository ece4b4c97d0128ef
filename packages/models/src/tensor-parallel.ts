// Shapes: B batch, T positions, P ranks of the axis, I inputs and O outputs of a matrix. A whole is what one rank would
// have; a rank's part is the i-th of P equal ones.
import {
  allGather,
  allReduce,
  ArgumentError,
  axisIndex,
  bernoulli,
  dynamicSlice,
  foldIn,
  multiply,
  reduceScatter,
  reshape,
  type Shard,
  type Tensor,
  transpose,
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

const partSize = (name: string, { shape }: Tensor, { axis, dim }: Shard): number => {
  const [numRanks, size] = [axisSize(axis), shape[dim]!];
  if (size % numRanks !== 0)
    throw new ArgumentError(
      `${name}: dimension ${dim} of [${shape.join(", ")}] has ${size}, which do not divide among the ${numRanks} ranks of axis "${axis}"; use a multiple of ${numRanks}, or fewer ranks`,
    );
  return size / numRanks;
};

/**
 * This rank's part of a whole that every rank has. Its gradient is laid into zeros at the same place.
 *
 * @throws ArgumentError where the ranks do not divide the dimension.
 */
export const ownShard = (x: Tensor, shard: Shard): Tensor => {
  const { axis, dim } = shard;
  if (axisSize(axis) === 1) return x;
  const size = partSize("ownShard", x, shard);
  const starts = x.shape.map((_, at) => (at === dim ? multiply(axisIndex(axis), size) : 0));
  return dynamicSlice(
    x,
    starts,
    x.shape.map((whole, at) => (at === dim ? size : whole)),
  );
};

/** `[…, P·n, …]` as `[P, …, n, …]`, so that dimension 0 counts the ranks. */
const apart = (x: Tensor, dim: number, numRanks: number): Tensor => {
  const before = x.shape.slice(0, dim);
  const split = reshape(x, [...before, numRanks, x.shape[dim]! / numRanks, ...x.shape.slice(dim + 1)]);
  return transpose(split, [dim, ...[...split.shape.keys()].filter((at) => at !== dim)]);
};

/** The whole of the parts of all ranks. Adjoint of `sumToShards`. Cost: P−1 times the bytes of `x` sent per rank. */
export const gatherShards = (x: Tensor, { axis, dim }: Shard): Tensor => {
  const numRanks = axisSize(axis);
  if (numRanks === 1) return x;
  if (dim === 0) return allGather(x, axis);
  const parts = reshape(allGather(x, axis), [numRanks, ...x.shape]);
  const order = [...x.shape.keys()].map((at) => at + 1);
  const inPlace = transpose(parts, [...order.slice(0, dim), 0, ...order.slice(dim)]);
  return reshape(
    inPlace,
    x.shape.map((size, at) => (at === dim ? numRanks * size : size)),
  );
};

/**
 * This rank's part of the sum of all ranks' `x`. Adjoint of `gatherShards`. Cost: (P−1)/P of the bytes of `x` sent per
 * rank.
 *
 * @throws ArgumentError where the ranks do not divide the dimension.
 */
export const sumToShards = (x: Tensor, shard: Shard): Tensor => {
  const { axis, dim } = shard;
  const numRanks = axisSize(axis);
  if (numRanks === 1) return x;
  const size = partSize("sumToShards", x, shard);
  if (dim === 0) return reduceScatter(x, axis);
  const shape = x.shape.map((whole, at) => (at === dim ? size : whole));
  const [first, ...rest] = shape as [number, ...number[]];
  return reduceScatter(reshape(apart(x, dim, numRanks), [numRanks * first, ...rest]), axis);
};

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
