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

/** Number of all-reduces in `selectGreatest`, and bytes per all-reduce. */
export const radixRounds: { readonly count: number; readonly bytes: number } = {
  count: 32 / digitBits,
  bytes: 4 * numBins,
};

export interface Selection {
  /** The k-th greatest key, i32 []. */
  readonly threshold: Tensor;
  /** Number of keys equal to the threshold among the k greatest keys, at least 1, i32 []. */
  readonly numTies: Tensor;
}

/**
 * Finds the exact k-th greatest key of all ranks, without gathering keys. Works digit by digit from the highest digit:
 * an all-reduce counts the keys per digit among the keys that match the digits found so far.
 *
 * Keys may be the bits of |x| (f32), because integers with these bits have the same order as |x|, with NaN greatest.
 *
 * @param keys i32 [m], none negative; at least k of them over all ranks.
 * Cost: 4 all-reduces of 1024 bytes.
 */
export const selectGreatest = (keys: Tensor, k: number, axis: string, collective?: CollectiveOptions): Selection => {
  let prefix = full([], 0, "i32");
  let needed = full([], k, "i32");
  for (let shift = 32 - digitBits; shift >= 0; shift -= digitBits) {
    const digits = bitwiseAnd(shiftRight(keys, shift), numBins - 1);
    // The first round includes all keys without shifting them, because a shift by 32 would be taken modulo 32.
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
