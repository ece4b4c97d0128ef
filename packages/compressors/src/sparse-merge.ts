import {
  absolute,
  add,
  arange,
  concat,
  cumsum,
  equal,
  full,
  gather,
  lessEqual,
  ones,
  pad,
  scatterAdd,
  slice,
  subtract,
  type Tensor,
  topK,
  where,
  zeros,
} from "@skein/tensor-core";
import type { SparsePayload } from "./sparse-payload.ts";

/**
 * Count for each query how many of a sorted list are at most as great, by bisection.
 *
 * Cost: ⌈log₂(m + 1)⌉ look-ups for each query, whatever the range of the numbers. They stay integers: f32 holds
 * positions up to 2²⁴ only.
 *
 * @param sorted i32 [m], ascending.
 * @param queries i32 [k].
 * @returns i32 [k], each 0 to m.
 */
export const countAtMost = (sorted: Tensor, queries: Tensor): Tensor => {
  const length = sorted.shape[0]!;
  const room = 2 ** (32 - Math.clz32(length));
  const padded = pad(sorted, [[0, room - 1 - length]], 2 ** 31 - 1);
  let count = zeros(queries.shape, "i32");
  for (let stride = room / 2; stride >= 1; stride /= 2) {
    const passes = lessEqual(gather(padded, add(count, stride - 1)), queries);
    count = where(passes, add(count, stride), count);
  }
  return count;
};

/** Whether each query (i32 [k], not negative) stands in a sorted list (i32 [m]): bool [k]. */
export const contains = (sorted: Tensor, queries: Tensor): Tensor =>
  equal(gather(sorted, subtract(countAtMost(sorted, queries), 1)), queries); // before the first stands nothing: `gather` gives the least i32

/**
 * Add two sparse vectors, and keep the `k` entries of greatest magnitude; lower positions first among equals, NaN
 * greatest.
 *
 * The lists are laid into one another by position, so that equal positions become neighbours; the sum of a pair is
 * always first + second, so ranks that merge the same two lists get the same bits. The second of a pair has rank −1 and
 * is never kept, since at least k positions differ.
 *
 * Cost: O(k log k), nothing of length n.
 *
 * @param first positions strictly increasing, at least `k` of them; so `second`.
 */
export const mergeLargest = (first: SparsePayload, second: SparsePayload, k: number): SparsePayload => {
  const [numFirst, numSecond] = [first.indices.shape[0]!, second.indices.shape[0]!];
  const before = countAtMost(first.indices, second.indices);
  const passed = cumsum(scatterAdd(zeros([numFirst], "i32"), before, ones([numSecond], "i32")));
  const places = concat([add(arange(numFirst), passed), add(arange(numSecond), before)]);
  const length = numFirst + numSecond;
  const indices = scatterAdd(zeros([length], "i32"), places, concat([first.indices, second.indices]));
  const values = scatterAdd(zeros([length]), places, concat([first.values, second.values]));
  const none = full([1], -1, "i32");
  const startsPair = equal(indices, concat([slice(indices, [1]), none]));
  const endsPair = equal(indices, concat([none, slice(indices, [0], [-1])]));
  const sums = where(startsPair, add(values, concat([slice(values, [1]), zeros([1])])), values);
  const [, kept] = topK(where(endsPair, -1, absolute(sums)), k, { sorted: false });
  return { values: gather(sums, kept), indices: gather(indices, kept) };
};
