import {
  absolute,
  add,
  ArgumentError,
  divide,
  equal,
  floor,
  greater,
  isFinite,
  less,
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
import { firstThenSecond, type SparsePayload, takeEntries } from "./sparse-payload.ts";
import { defineSparsifier } from "./sparsifier.ts";

export interface MsTopKCompressorOptions {
  /** Share of entries to keep, in (0, 1]. */
  readonly density: number;
  /** Thresholds are told apart as by so many steps of bisection, 1 to 16. Default: 12, as many as a device counts in its fastest memory. */
  readonly samplings?: number;
}

/**
 * Keep `k` entries of nearly the largest magnitudes, exactly `k` of them, without sorting: by the thresholds that a bisection would sample.
 *
 * `k = max(1, ⌊density · n⌋)`. Bisection halves the range of magnitudes `samplings` times, first at the mean m, then between m and the maximum M
 * (or 0 and m, where fewer than k entries reach the mean), and counts at every step. Its steps only ever ask at `2^samplings` thresholds, evenly
 * spaced above and below the mean; so one histogram counts for all of them at once. Let t₁ be the lowest threshold that fewer than k entries
 * reach, and t₂ the one below: all entries from t₁ on are sent, and of those in [t₂, t₁) the first that make it k.
 *
 * Nothing that is dropped exceeds anything kept by a level or more: a level is `w = (M − m)/2^(samplings−1)` above the mean. So
 * `‖u − C(u)‖² ≤ (1 − k/n)‖u‖² + 2kMw`. Ties, equal magnitudes and k = n need no special case. Biased: wrap it in `withErrorFeedback`.
 *
 * The bracket is filled from its lowest position, where the paper starts at a random one: what is left out there grows in the residual past t₁.
 *
 * A gradient that is not finite throughout makes all values NaN.
 *
 * @throws ArgumentError for a density outside (0, 1], or samplings other than 1 to 16.
 * Cost: 8k bytes per rank, by all-gather: 8k(P−1) sent. Reads the gradient about four times.
 * @example withErrorFeedback(msTopKCompressor({ density: 0.001 }))
 * Source: Shi et al. 2021, arXiv 2010.10458, Algorithm 1 (MSTopK).
 */
export const msTopKCompressor = ({ density, samplings = 12 }: MsTopKCompressorOptions): Compressor<[], SparsePayload> => {
  checkDensity("msTopKCompressor", density);
  if (!(Number.isInteger(samplings) && samplings >= 1 && samplings <= 16))
    throw new ArgumentError(`msTopKCompressor: ${samplings} samplings cannot be counted; use an integer from 1 to 16, such as 12`);
  const numLevels = 2 ** samplings;
  const select = (flat: Tensor): SparsePayload => {
    const n = flat.shape[0]!;
    const magnitudes = absolute(flat);
    const most = reduceMax(magnitudes);
    // Divided before they are added, so that the sum cannot overflow.
    const mean = minimum(sum(multiply(magnitudes, 1 / Math.max(1, n))), most);
    // Half of the levels below the mean, half above; 1e-37 where a range is empty.
    const below = divide(magnitudes, maximum(mean, 1e-37));
    const above = add(divide(subtract(magnitudes, mean), maximum(subtract(most, mean), 1e-37)), 1);
    const height = multiply(where(less(magnitudes, mean), below, above), numLevels / 2);
    const levels = minimum(floor(height), numLevels - 1);
    const k = keptEntries(density, n);
    const { level } = levelOfKth(levels, numLevels, k);
    return takeEntries(flat, firstThenSecond(greater(levels, level), equal(levels, level), k), isFinite(most));
  };
  // ‖u‖ is at least M, and w at most M/2^(samplings−1).
  const contraction = (n: number): number => {
    const k = keptEntries(density, n);
    return Math.max(0, keptShare(k, n) - (4 * k) / numLevels);
  };
  return defineSparsifier({ name: `ms-top-k ${density}`, capacity: (n) => keptEntries(density, n), contraction, select });
};
