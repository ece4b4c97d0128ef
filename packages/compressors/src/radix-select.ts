import {
  add,
  allReduce,
  bitwiseAnd,
  type CollectiveOptions,
  cumsum,
  equal,
  full,
  gather,
  greaterEqual,
  cast,
  multiply,
  onesLike,
  scatterAdd,
  shiftRight,
  subtract,
  sum,
  type Tensor,
  where,
  zeros,
} from "@skein/tensor-core";

const digitBits = 8;
const numBins = 2 ** digitBits;

/** All-reduces, and bytes of each, that `selectGreatest` costs. */
export const radixRounds: { readonly count: number; readonly bytes: number } = {
  count: 32 / digitBits,
  bytes: 4 * numBins,
};

export interface Selection {
  /** i32 []: the k-th greatest key. */
  readonly threshold: Tensor;
  /** i32 []: how many keys equal to it are among the k greatest, at least 1. */
  readonly numTies: Tensor;
}

/**
 * Find the k-th greatest of the keys of all ranks, exactly, without gathering any: digit by digit from the top,
 * all-reduce how many keys have each digit among those that share the digits found so far.
 *
 * Keys that are bits of |x| (f32) are ordered as |x| is; NaN greatest.
 *
 * @param keys i32 [m], none negative; at least k of them over all ranks.
 * Cost: 4 all-reduces of 1024 bytes.
 */
export const selectGreatest = (keys: Tensor, k: number, axis: string, collective?: CollectiveOptions): Selection => {
  let prefix = full([], 0, "i32");
  let needed = full([], k, "i32");
  for (let shift = 32 - digitBits; shift >= 0; shift -= digitBits) {
    const digits = bitwiseAnd(shiftRight(keys, shift), numBins - 1);
    // Shifts count modulo 32, so the first round, where all keys take part, must not shift by 32.
    const bins =
      shift + digitBits === 32 ? digits : where(equal(shiftRight(keys, shift + digitBits), prefix), digits, numBins);
    const counts = allReduce(scatterAdd(zeros([numBins], "i32"), bins, onesLike(bins)), axis, "sum", collective);
    const atLeast = cumsum(counts, { reverse: true });
    const digit = subtract(sum(cast(greaterEqual(atLeast, needed), "i32")), 1);
    needed = subtract(needed, gather(atLeast, add(digit, 1), { outside: "zero" }));
    prefix = add(multiply(prefix, numBins), digit);
  }
  return { threshold: prefix, numTies: needed };
};
