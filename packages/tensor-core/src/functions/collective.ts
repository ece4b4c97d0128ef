import type { Reduction } from "../communicator.ts";
import { ArgumentError } from "../errors.ts";
import { axisSize, emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { equal, full, multiply, where } from "./elementwise.ts";

// Along an axis with one rank every collective is the value itself, so a function written for many ranks leaves no trace
// of them in a graph for one, and needs no communicator there.

const checkRank = (op: string, name: string, rank: number, axis: string): void => {
  const worldSize = axisSize(axis);
  if (!Number.isInteger(rank) || rank < 0 || rank >= worldSize) {
    throw new ArgumentError(`${op}: ${name} ${rank} is not a rank of axis "${axis}", which has ${worldSize}; use 0 to ${worldSize - 1}`);
  }
};

/** This rank's position along a mesh axis, an i32 scalar. */
export const axisIndex = (axis: string): Tensor => {
  const worldSize = axisSize(axis);
  return worldSize === 1 ? full([], 0, "i32") : emitOne("axis-index", [], { axis, axisSize: worldSize });
};

/**
 * Combine `x` of all ranks of `axis`; every rank gets the result. f32, f16, bf16, i32, u32. Gradients flow for "sum" only.
 *
 * Cost: 2(P−1)/P of the bytes of `x` sent per rank.
 */
export const allReduce = (x: Tensor, axis: string, reduction: Reduction = "sum"): Tensor => {
  const worldSize = axisSize(axis);
  return worldSize === 1 ? x : emitOne("all-reduce", [x], { axis, axisSize: worldSize, reduction });
};

/** Mean of `x` over the ranks of `axis`, f32: the sum times 1/P. */
export const allReduceMean = (x: Tensor, axis: string): Tensor => {
  const worldSize = axisSize(axis);
  return worldSize === 1 ? x : multiply(allReduce(x, axis), 1 / worldSize);
};

/** Combine `[P·n, …]` of all ranks; rank r gets chunk r, `[n, …]`. Cost: (P−1)/P of the bytes of `x` sent per rank. */
export const reduceScatter = (x: Tensor, axis: string, reduction: Reduction = "sum"): Tensor => {
  const worldSize = axisSize(axis);
  return worldSize === 1 ? x : emitOne("reduce-scatter", [x], { axis, axisSize: worldSize, reduction });
};

/** `[n, …]` of all ranks along dimension 0, in rank order: `[P·n, …]`. Cost: P−1 times the bytes of `x` sent per rank. */
export const allGather = (x: Tensor, axis: string): Tensor => {
  const worldSize = axisSize(axis);
  return worldSize === 1 ? x : emitOne("all-gather", [x], { axis, axisSize: worldSize });
};

/** Split dimension 0 into P chunks, send chunk r to rank r; chunk r of the result came from rank r. Cost: (P−1)/P of the bytes of `x` sent per rank. */
export const allToAll = (x: Tensor, axis: string): Tensor => {
  const worldSize = axisSize(axis);
  return worldSize === 1 ? x : emitOne("all-to-all", [x], { axis, axisSize: worldSize });
};

/** Rank `root`'s `x` on every rank. */
export const broadcastFromRoot = (x: Tensor, axis: string, root = 0): Tensor => {
  checkRank("broadcast", "root", root, axis);
  const worldSize = axisSize(axis);
  return worldSize === 1 ? x : emitOne("broadcast", [x], { axis, axisSize: worldSize, root });
};

/** Sum of `x` over all ranks at rank `root`, zeros elsewhere. Cost: that of `allReduce`. */
export const reduceToRoot = (x: Tensor, axis: string, root = 0): Tensor => {
  checkRank("reduceToRoot", "root", root, axis);
  if (axisSize(axis) === 1) return x;
  // A choice, not a product with 0 or 1: a non-finite sum must not leak into the other ranks.
  return where(equal(axisIndex(axis), root), allReduce(x, axis), 0);
};

/**
 * Point to point: for each pair, rank `to` gets the `x` of rank `from`; a rank that nobody sends to gets zeros.
 *
 * @param pairs each rank at most once as `from` and at most once as `to`.
 * @example sendReceive(x, "pipeline", [[0, 1], [1, 2], [2, 3]]); // hand on to the next stage
 */
export const sendReceive = (x: Tensor, axis: string, pairs: readonly (readonly [from: number, to: number])[]): Tensor => {
  for (const [from, to] of pairs) {
    checkRank("sendReceive", "from", from, axis);
    checkRank("sendReceive", "to", to, axis);
  }
  for (const end of [0, 1] as const) {
    const seen = new Set(pairs.map((pair) => pair[end]));
    if (seen.size !== pairs.length) {
      throw new ArgumentError(
        `sendReceive: the pairs ${JSON.stringify(pairs)} name a rank twice as ${end === 0 ? "sender" : "receiver"}; each rank sends and receives at most once, use two calls`,
      );
    }
  }
  const worldSize = axisSize(axis);
  if (worldSize === 1) return pairs.length === 1 ? x : full(x.shape, 0, x.dtype);
  return emitOne("send-receive", [x], { axis, axisSize: worldSize, pairs: pairs.map(([from, to]) => [from, to]) });
};
