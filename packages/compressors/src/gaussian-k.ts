import { absolute, add, cast, greater, greaterEqual, isFinite, logicalAnd, multiply, nonzero, sum, type Tensor } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";
import { checkDensity, keptEntries } from "./density.ts";
import { levelOfKth, levelsAround, numLevelsAround } from "./magnitude-level.ts";
import { twoSidedQuantile } from "./normal-quantile.ts";
import { type SparsePayload, takeEntries } from "./sparse-payload.ts";
import { defineSparsifier } from "./sparsifier.ts";

export interface GaussianKCompressorOptions {
  /** Share of entries to aim at, in (0, 1]. */
  readonly density: number;
}

const mostEntries = (density: number, n: number): number => Math.min(n, Math.ceil((4 * keptEntries(density, n)) / 3));

/**
 * Send about the `k` entries of largest magnitude, by a threshold: where a normal distribution would have it, then mended by counting once.
 *
 * `t = z·σ` with `z = Φ⁻¹(1 − k/2n)`, `k = max(1, ⌊density · n⌋)`, and σ of a normal distribution from its mean magnitude, `σ = √(π/2) · mean |u|`:
 * one pass, no squares that overflow, and less moved by outliers than the standard deviation. One histogram of levels around t then gives the
 * highest of 4096 thresholds that at least k entries reach. If more than `⌈4k/3⌉` reach it, as with ties, the next higher threshold is taken; and
 * if none reaches that, the first ⌈4k/3⌉ of the many. Zeros are never sent.
 *
 * Where |u| has a density around its k-th largest value x, which may be 1000 times smaller or larger than t, the count is between k and
 * `k · (1 + w·h)`, w the width of a level at x and h the hazard rate there: k to 1.02k for a normal distribution down to density 0.0001, to 1.04k where
 * its mean is 3σ; up to 4k/3 or down to less than k where a distribution ends in a cliff or in ties. The published form compares |u| with `mean + z·std`, which misses when the mean is not 0, and halves or stretches that threshold up to three times,
 * with no bound on the count. Biased: wrap it in `withErrorFeedback`.
 *
 * A gradient that is not finite throughout makes all values NaN.
 *
 * @throws ArgumentError for a density outside (0, 1].
 * Cost: 8 bytes per sent entry, at most `8⌈4k/3⌉`, by all-gather; and 4(P−1) bytes of counts. Reads the gradient about three times, sorts nothing.
 * @example withErrorFeedback(gaussianKCompressor({ density: 0.001 }))
 * Source: Shi et al. 2019, arXiv 1911.08772, Algorithm 1 (Gaussian-k).
 */
export const gaussianKCompressor = ({ density }: GaussianKCompressorOptions): Compressor<[], SparsePayload> => {
  checkDensity("gaussianKCompressor", density);
  const select = (flat: Tensor): SparsePayload => {
    const n = flat.shape[0]!;
    const [k, capacity] = [keptEntries(density, n), mostEntries(density, n)];
    const magnitudes = absolute(flat);
    // Divided before they are added: a sum of finite values stays finite, so the mean says whether all are.
    const mean = sum(multiply(magnitudes, 1 / Math.max(1, n)));
    // A threshold of 0 has no levels around it: bounds for density 1 and for gradients near 0.
    const z = n === 0 ? 1 : Math.max(0.1, twoSidedQuantile(k / n));
    const levels = levelsAround(magnitudes, multiply(mean, z * Math.sqrt(Math.PI / 2)));
    const { level, count, countAbove } = levelOfKth(levels, numLevelsAround, k);
    const step = cast(logicalAnd(greater(count, capacity), greater(countAbove, 0)), "f32");
    const chosen = logicalAnd(greaterEqual(levels, add(level, step)), greater(magnitudes, 0));
    return takeEntries(flat, nonzero(chosen, capacity), isFinite(mean));
  };
  return defineSparsifier({
    name: `gaussian-k ${density}`,
    capacity: (n) => mostEntries(density, n),
    ragged: true,
    select,
  });
};
