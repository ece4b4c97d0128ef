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
 * Counts for each query, by bisection, the elements of a sorted list that are less than or equal to the query.
 *
 * Cost: ⌈log₂(m + 1)⌉ lookups per query, for any range of numbers. Uses integers, because f32 is exact only up to 2²⁴.
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

/** Whether a sorted list (i32 [m]) contains each query (i32 [k], not negative): bool [k]. */
export const contains = (sorted: Tensor, queries: Tensor): Tensor =>
  equal(gather(sorted, subtract(countAtMost(sorted, queries), 1)), queries); // index −1 gives the lowest i32

/**
 * Adds two sparse vectors, and returns the `k` entries of greatest magnitude. Among equal magnitudes, lower indices are
 * preferred; NaN counts as greatest.
 *
 * The lists are merged by index, so that equal indices are adjacent. Values with equal indices are added in the order
 * first + second, so the results of ranks that merge the same two lists are bitwise identical. The second entry of such
 * a pair gets the sort key −1 and is never selected, because there are at least k different indices.
 *
 * Cost: O(k log k), independent of n.
 *
 * @param first at least `k` entries with strictly increasing indices. @param second at least `k` entries with strictly
 *   increasing indices.
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
