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
import { checkDensity, numKeptEntries, minKeptEnergyShare } from "./density.ts";
import { levelOfKth } from "./magnitude-level.ts";
import { magnitudeBound } from "./magnitude-bound.ts";
import { rankInSample, sampleMagnitudes, sampleSizeOf } from "./magnitude-sample.ts";
import { selectByBound } from "./select-by-bound.ts";
import { firstThenSecond, nanUnless, type SparsePayload } from "./sparse-payload.ts";
import { defineSparsifier } from "./sparsifier.ts";

export interface MsTopKCompressorOptions {
  /** Share of entries to keep, in (0, 1]. */
  readonly density: number;
  /**
   * Resolution of the threshold: number of bisection steps, 1 to 24. Default: 24, the full resolution of f32; the paper
   * uses 30.
   */
  readonly samplings?: number;
}

interface Candidates extends SparsePayload {
  /** Whether all entries of the gradient are finite, bool []. */
  readonly finite: Tensor;
}

/**
 * Safety margin, in standard deviations, of a bound that is estimated from a sample. The expected number of entries
 * that reach the bound exceeds k by this margin, and the capacity exceeds this expected number by the same margin.
 */
const deviations = 6;

const allCandidates = (flat: Tensor): Candidates => ({
  values: flat,
  indices: arange(flat.shape[0]!),
  finite: isFinite(sum(multiply(absolute(flat), 1 / Math.max(1, flat.shape[0]!)))),
});

/** Returns candidate entries, which include the k largest entries; see `msTopKCompressor`. */
const selectCandidates = (flat: Tensor, k: number): Candidates => {
  const n = flat.shape[0]!;
  const size = sampleSizeOf(n, k);
  const rank = rankInSample(k, n, size, deviations);
  // Entries below the sample's minimum may be needed.
  if (size.stride === 1 || rank === size.count) return allCandidates(flat);
  const capacity = Math.min(n, Math.ceil((n / size.count) * (rank + deviations * Math.sqrt(rank))));
  // If more entries reach the bound than the capacity, as with ties, only greater entries are taken, because the first
  // entries by index might not include the largest entry.
  const most = (capacity * size.count) / n;
  return selectByBound(flat, magnitudeBound(sampleMagnitudes(flat, size), rank, most), capacity);
};

/**
 * Maximum number of bisection steps that one histogram replaces: log2 of the number of its bins. More bins are slow on
 * a GPU.
 */
const samplingsAtOnce = 12;

/** Returns the indices of approximately the k largest magnitudes, i32 [k]; see `msTopKCompressor`. */
const nearlyLargest = (magnitudes: Tensor, k: number, samplings: number): Tensor => {
  const numLevels = 2 ** Math.min(samplings, samplingsAtOnce);
  const most = reduceMax(magnitudes);
  // Divides before the sum, so that the sum cannot overflow.
  const mean = minimum(sum(multiply(magnitudes, 1 / Math.max(1, magnitudes.shape[0]!))), most);
  // Half of the levels are below the mean, and half are above. The lower bound 1e-37 avoids a division by zero for an
  // empty range.
  const below = divide(magnitudes, maximum(mean, 1e-37));
  const above = add(divide(subtract(magnitudes, mean), maximum(subtract(most, mean), 1e-37)), 1);
  const height = multiply(where(less(magnitudes, mean), below, above), numLevels / 2);
  const levels = minimum(floor(height), numLevels - 1);
  const { level, countAbove } = levelOfKth(levels, numLevels, k);
  const [isAbove, isWithin] = [greater(levels, level), equal(levels, level)];
  if (samplings <= samplingsAtOnce) return firstThenSecond(isAbove, isWithin, k).indices;
  // Subdivides the level of the k-th entry. Exact, because heights are integers plus up to 12 fractional bits.
  const numSteps = 2 ** (samplings - samplingsAtOnce);
  const steps = where(isWithin, minimum(floor(multiply(subtract(height, levels), numSteps)), numSteps - 1), -1);
  const { level: step } = levelOfKth(steps, numSteps, subtract(k, countAbove));
  return firstThenSecond(logicalOr(isAbove, greater(steps, step)), equal(steps, step), k).indices;
};

/**
 * MSTopK: keeps exactly `k` entries of almost the largest magnitudes, without sorting. The thresholds are the same as
 * in a bisection.
 *
 * `k = max(1, ⌊density · n⌋)`. Bisection halves the range of magnitudes `samplings` times, first at the mean m, then
 * between m and the maximum M (or between 0 and m, if fewer than k entries reach the mean), and counts in every step.
 * The steps can only reach `2^samplings` thresholds, evenly spaced above and below the mean. So one histogram of 2¹²
 * thresholds replaces twelve steps, and a second histogram, within the level of the k-th entry, replaces the remaining
 * steps. Let t₁ be the lowest threshold that fewer than k entries reach, and t₂ the next lower threshold. All entries
 * of t₁ or more are sent, and the first entries in [t₂, t₁) fill the payload up to k.
 *
 * No dropped entry exceeds a sent entry by one level or more. Above the mean, a level is `w = (M − m)/2^(samplings−1)`.
 * With 24 samplings, w is at most the f32 rounding error of such a difference. So `‖u − C(u)‖² ≤ (1 − k/n)‖u‖² + 2kMw`.
 * Equal magnitudes and k = n need no special case. Biased: wrap it in `withErrorFeedback`.
 *
 * For more than 2¹⁸ entries (with k ≥ 832), only candidates are counted: entries that reach a bound from a sample (see
 * `sampleSizeOf`). At least k entries reach the bound, except once in 10⁸ cases; on average 1.1k to 1.8k entries. M and
 * m are then the maximum and the mean of the candidates. If fewer than k entries reach the bound, all of them are sent,
 * and zeros fill the rest. If more entries reach the bound than the capacity of 1.2k to 2.8k, as with ties, only
 * greater entries are candidates, and zeros may also fill the rest. The probability of 10⁻⁸ assumes that large entries
 * are at random indices. If large entries repeat with the stride of the sample, the sample may miss them, so no
 * contraction is known.
 *
 * Entries in [t₂, t₁) are taken in index order, while the paper starts at a random index. With 24 samplings, these
 * entries are equal in f32 unless outliers are 2²⁴ times the mean. Unsent entries grow in the residual until they
 * exceed t₁.
 *
 * A gradient with a non-finite entry makes all values NaN.
 *
 * @throws ArgumentError if the density is outside (0, 1], or `samplings` is not an integer from 1 to 24.
 * Cost: 8k bytes per rank, by all-gather: 8k(P−1) sent. Reads the gradient once, plus a sample.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(msTopKCompressor({ density: 0.25 }));
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [0, -4, 0, 0]
 * ```
 * Source: Shi et al. 2021, arXiv 2010.10458, Algorithm 1 (MSTopK).
 */
export const msTopKCompressor = ({
  density,
  samplings = 24,
}: MsTopKCompressorOptions): Compressor<[], SparsePayload> => {
  checkDensity("msTopKCompressor", density);
  if (!(Number.isInteger(samplings) && samplings >= 1 && samplings <= 24))
    throw new ArgumentError(
      `msTopKCompressor: samplings ${samplings} is not an integer from 1 to 24; use 24 for the full resolution of f32`,
    );
  const select = (flat: Tensor): SparsePayload => {
    const k = numKeptEntries(density, flat.shape[0]!);
    const { values, indices, finite } = selectCandidates(flat, k);
    const slots = nearlyLargest(absolute(values), k, samplings);
    const take = (x: Tensor): Tensor => gather(x, slots, { outside: "zero" });
    return nanUnless(finite, { values: take(values), indices: take(indices) });
  };
  // ‖u‖ is at least M, and w is at most M/2^(samplings−1). In addition, f32 rounds heights by up to three of the
  // smallest steps.
  const contraction = (n: number): number | undefined => {
    const k = numKeptEntries(density, n);
    const least = minKeptEnergyShare(k, n) - 4 * k * (2 ** -samplings + 3 * 2 ** -24);
    return sampleSizeOf(n, k).stride === 1 && least > 0 ? least : undefined;
  };
  return defineSparsifier({
    name: `ms-top-k ${density}`,
    capacity: (n) => numKeptEntries(density, n),
    contraction,
    select,
  });
};
