// Terms: the full tensor is the unsharded tensor. For an axis of P ranks, the full tensor is divided into P equal
// shards along one dimension. Rank i has shard i.
import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { axisSize, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import type { Shard } from "../sharding.ts";
import { allGather, axisIndex, reduceScatter } from "./collective.ts";
import { dynamicSlice } from "./dynamic-slice.ts";
import { multiply } from "./elementwise.ts";
import { reshape, transpose } from "./movement.ts";

/**
 * Checks that `shard` is a valid shard of `x`.
 *
 * @returns Number of ranks along the axis.
 * @throws ArgumentError if `x` is not a tensor, or `shard` is not a valid shard of `x`.
 */
const checkShard = (name: string, x: Tensor, shard: Shard): number => {
  requireOperands(name, [x]);
  const { axis, dim } = (shard ?? {}) as Partial<Shard>;
  if (typeof axis !== "string" || axis === "" || !Number.isInteger(dim) || dim! < 0 || dim! >= x.shape.length)
    throw new ArgumentError(
      `${name}: the shard of [${x.shape.join(", ")}] is ${describe(shard)}; pass { axis, dim }: the mesh axis along which the tensor is sharded, and one of its dimensions`,
    );
  return axisSize(axis);
};

const partSize = (name: string, { shape }: Tensor, { axis, dim }: Shard): number => {
  const [numRanks, size] = [axisSize(axis), shape[dim]!];
  if (size % numRanks !== 0)
    throw new ArgumentError(
      `${name}: dimension ${dim} of [${shape.join(", ")}] has ${size}, which do not divide among the ${numRanks} ranks of axis "${axis}"; use a multiple of ${numRanks}, or fewer ranks`,
    );
  return size / numRanks;
};

/**
 * Returns this rank's shard of a replicated tensor. The gradient has zeros outside the shard.
 *
 * @throws ArgumentError if the dimension does not exist, or is not divisible by the number of ranks.
 */
export const ownShard = (x: Tensor, shard: Shard): Tensor => {
  if (checkShard("ownShard", x, shard) === 1) return x;
  const { axis, dim } = shard;
  const size = partSize("ownShard", x, shard);
  const starts = x.shape.map((_, at) => (at === dim ? multiply(axisIndex(axis), size) : 0));
  return dynamicSlice(
    x,
    starts,
    x.shape.map((whole, at) => (at === dim ? size : whole)),
  );
};

/** Reshapes `[…, P·n, …]` to `[P, …, n, …]`, so that dimension 0 is the rank index. */
const splitByRank = (x: Tensor, dim: number, numRanks: number): Tensor => {
  const before = x.shape.slice(0, dim);
  const split = reshape(x, [...before, numRanks, x.shape[dim]! / numRanks, ...x.shape.slice(dim + 1)]);
  return transpose(split, [dim, ...[...split.shape.keys()].filter((at) => at !== dim)]);
};

/**
 * Gathers the full tensor from the shards of all ranks. Adjoint of `sumToShards`. Cost: P−1 times the bytes of `x` sent
 * per rank.
 *
 * @throws ArgumentError if the dimension does not exist.
 */
export const gatherShards = (x: Tensor, shard: Shard): Tensor => {
  const numRanks = checkShard("gatherShards", x, shard);
  if (numRanks === 1) return x;
  const { axis, dim } = shard;
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
 * Returns this rank's shard of the sum of `x` over all ranks. Adjoint of `gatherShards`. Cost: (P−1)/P of the bytes of
 * `x` sent per rank.
 *
 * @throws ArgumentError if the dimension does not exist, or is not divisible by the number of ranks.
 */
export const sumToShards = (x: Tensor, shard: Shard): Tensor => {
  const numRanks = checkShard("sumToShards", x, shard);
  if (numRanks === 1) return x;
  const { axis, dim } = shard;
  const size = partSize("sumToShards", x, shard);
  if (dim === 0) return reduceScatter(x, axis);
  const shape = x.shape.map((whole, at) => (at === dim ? size : whole));
  const [first, ...rest] = shape as [number, ...number[]];
  return reduceScatter(reshape(splitByRank(x, dim, numRanks), [numRanks * first, ...rest]), axis);
};
