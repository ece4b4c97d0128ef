import {
  absolute,
  add,
  arange,
  ArgumentError,
  divide,
  equal,
  floor,
  gather,
  greater,
  isFinite,
  less,
  logicalOr,
  maximum,
  minimum,
  multiply,
  reduceMax,
  subtract,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";
import { checkDensity, keptEntries, keptShare } from "./density.ts";
import { levelOfKth } from "./magnitude-level.ts";
import { magnitudeBound } from "./magnitude-bound.ts";
import { rankInSample, sampleMagnitudes, sampleSizeOf } from "./magnitude-sample.ts";
import { reachingEntries } from "./reaching-entries.ts";
import { firstThenSecond, nanUnless, type SparsePayload } from "./sparse-payload.ts";
import { defineSparsifier } from "./sparsifier.ts";

export interface MsTopKCompressorOptions {
  /** Share of entries to keep, in (0, 1]. */
  readonly density: number;
  /**
   * Thresholds are told apart as by so many steps of bisection, 1 to 24. Default: 24, all that f32 can tell apart; the
   * paper takes 30.
   */
  readonly samplings?: number;
}

interface Candidates extends SparsePayload {
  /** bool [], whether all of the gradient is finite. */
  readonly finite: Tensor;
}

/**
 * So many standard deviations more than k are let through by a bound from a sample, and there is room for as many more.
 */
const deviations = 6;

const wholeOf = (flat: Tensor): Candidates => ({
  values: flat,
  indices: arange(flat.shape[0]!),
  finite: isFinite(sum(multiply(absolute(flat), 1 / Math.max(1, flat.shape[0]!)))),
});

/** Entries among which the k largest are; see `msTopKCompressor`. */
const candidatesOf = (flat: Tensor, k: number): Candidates => {
  const n = flat.shape[0]!;
  const size = sampleSizeOf(n, k);
  const rank = rankInSample(k, n, size, deviations);
  // Below the least of a sample there may be others.
  if (size.stride === 1 || rank === size.count) return wholeOf(flat);
  const capacity = Math.min(n, Math.ceil((n / size.count) * (rank + deviations * Math.sqrt(rank))));
  // Where more than there is room for reach it, as with ties, only what is greater: the first by position might leave
  // out the greatest of all.
  const most = (capacity * size.count) / n;
  return reachingEntries(flat, magnitudeBound(sampleMagnitudes(flat, size), rank, most), capacity);
};

/** Samplings that one histogram counts: with more bins a device is slow. */
const samplingsAtOnce = 12;

/** Positions i32 [k] of k of nearly the largest magnitudes; see `msTopKCompressor`. */
const nearlyLargest = (magnitudes: Tensor, k: number, samplings: number): Tensor => {
  const numLevels = 2 ** Math.min(samplings, samplingsAtOnce);
  const most = reduceMax(magnitudes);
  // Divided before they are added, so that the sum cannot overflow.
  const mean = minimum(sum(multiply(magnitudes, 1 / Math.max(1, magnitudes.shape[0]!))), most);
  // Half of the levels below the mean, half above; 1e-37 where a range is empty.
  const below = divide(magnitudes, maximum(mean, 1e-37));
  const above = add(divide(subtract(magnitudes, mean), maximum(subtract(most, mean), 1e-37)), 1);
  const height = multiply(where(less(magnitudes, mean), below, above), numLevels / 2);
  const levels = minimum(floor(height), numLevels - 1);
  const { level, countAbove } = levelOfKth(levels, numLevels, k);
  const [isAbove, isWithin] = [greater(levels, level), equal(levels, level)];
  if (samplings <= samplingsAtOnce) return firstThenSecond(isAbove, isWithin, k).indices;
  // The level of the k-th is halved further. Exact: heights are whole numbers and up to 12 bits behind the point.
  const numSteps = 2 ** (samplings - samplingsAtOnce);
  const steps = where(isWithin, minimum(floor(multiply(subtract(height, levels), numSteps)), numSteps - 1), -1);
  const { level: step } = levelOfKth(steps, numSteps, subtract(k, countAbove));
  return firstThenSecond(logicalOr(isAbove, greater(steps, step)), equal(steps, step), k).indices;
};

/**
 * Keep `k` entries of nearly the largest magnitudes, exactly `k` of them, without sorting: by the thresholds that a
 * bisection would sample.
 *
 * `k = max(1, ⌊density · n⌋)`. Bisection halves the range of magnitudes `samplings` times, first at the mean m, then
 * between m and the maximum M (or 0 and m, where fewer than k entries reach the mean), and counts at every step. Its
 * steps only ever ask at `2^samplings` thresholds, evenly spaced above and below the mean; so a histogram of 2¹² of
 * them counts for twelve steps at once, and one within the level so found for the others. Let t₁ be the lowest
 * threshold that fewer than k entries reach, and t₂ the one below: all entries from t₁ on are sent, and of those in
 * [t₂, t₁) the first that make it k.
 *
 * Nothing that is dropped exceeds anything kept by a level or more: a level is `w = (M − m)/2^(samplings−1)` above the
 * mean, and with 24 samplings no more than f32 rounds such a difference by. So `‖u − C(u)‖² ≤ (1 − k/n)‖u‖² + 2kMw`.
 * Ties, equal magnitudes and k = n need no special case. Biased: wrap it in `withErrorFeedback`.
 *
 * Of more than 2¹⁸ entries (with k of 832 or more), only candidates are counted: those that reach the magnitude of a
 * rank in a sample (see `sampleSizeOf`) that lets k through but 1 time in 10⁸, between 1.1k and 1.8k of them in the
 * mean. M and m are then theirs. Should fewer than k reach it, all of them are sent, and zeros in place of the others;
 * so also where more than a room of 1.2k to 2.8k of the sample reach it, as with ties: then those that are greater.
 * That probability takes places of large entries for random; where they repeat every p entries, p the stride, the
 * sample may miss them, so no contraction is known.
 *
 * The bracket is filled from its lowest position, where the paper starts at a random one: with 24 samplings those in it
 * are equal in f32, but for outliers 2²⁴ times the mean, and what is left out there grows in the residual past t₁.
 *
 * A gradient that is not finite throughout makes all values NaN.
 *
 * @throws ArgumentError for a density outside (0, 1], or samplings other than 1 to 24.
 * Cost: 8k bytes per rank, by all-gather: 8k(P−1) sent. Reads the gradient once, and a sample.
 * @example withErrorFeedback(msTopKCompressor({ density: 0.001 }))
 * Source: Shi et al. 2021, arXiv 2010.10458, Algorithm 1 (MSTopK).
 */
export const msTopKCompressor = ({
  density,
  samplings = 24,
}: MsTopKCompressorOptions): Compressor<[], SparsePayload> => {
  checkDensity("msTopKCompressor", density);
  if (!(Number.isInteger(samplings) && samplings >= 1 && samplings <= 24))
    throw new ArgumentError(`msTopKCompressor: ${samplings} samplings cannot be counted; use an integer from 1 to 24`);
  const select = (flat: Tensor): SparsePayload => {
    const k = keptEntries(density, flat.shape[0]!);
    const { values, indices, finite } = candidatesOf(flat, k);
    const slots = nearlyLargest(absolute(values), k, samplings);
    const take = (x: Tensor): Tensor => gather(x, slots, { outside: "zero" });
    return nanUnless(finite, { values: take(values), indices: take(indices) });
  };
  // ‖u‖ is at least M, and w at most M/2^(samplings−1); and f32 rounds heights by up to three of the least steps.
  const contraction = (n: number): number | undefined => {
    const k = keptEntries(density, n);
    const least = keptShare(k, n) - 4 * k * (2 ** -samplings + 3 * 2 ** -24);
    return sampleSizeOf(n, k).stride === 1 && least > 0 ? least : undefined;
  };
  return defineSparsifier({
    name: `ms-top-k ${density}`,
    capacity: (n) => keptEntries(density, n),
    contraction,
    select,
  });
};
