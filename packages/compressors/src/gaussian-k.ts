import { arange, full, type Tensor } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";
import { checkDensity, keptEntries } from "./density.ts";
import { magnitudeBound } from "./magnitude-bound.ts";
import { rankInSample, sampleMagnitudes, sampleSizeOf } from "./magnitude-sample.ts";
import { reachingEntries } from "./reaching-entries.ts";
import { nanUnless, type SparsePayload } from "./sparse-payload.ts";
import { defineSparsifier } from "./sparsifier.ts";

export interface GaussianKCompressorOptions {
  /** Share of entries to aim at, in (0, 1]. */
  readonly density: number;
}

const mostEntries = (density: number, n: number): number => Math.min(n, Math.ceil((4 * keptEntries(density, n)) / 3));

/**
 * Send about the `k` entries of largest magnitude, by a threshold: where a normal distribution would have it, then
 * mended by counting.
 *
 * `t = z·σ` with `z = Φ⁻¹(1 − k/2n)`, `k = max(1, ⌊density · n⌋)`, and σ from the mean magnitude. Counts around t then
 * give the threshold that k entries reach; see `magnitudeBound`. Up to 2¹⁸ entries all are counted. Of more, s are:
 * every p-th, p prime (see `sampleSizeOf`). Zeros are never sent. Of entries too many for the room, `⌈4k/3⌉`, the first
 * are sent; with error feedback the others grow until the threshold lies above those that were.
 *
 * Density error. Where all are counted, k are sent, ties aside. By a sample: k in the mean, with a relative standard
 * deviation of `√((1 − s/n) · n/(k·s))`, whatever the distribution: 2.8 % at n = 25·10⁶ and density 0.01, 8.5 % at
 * 0.001, 12 % at most. That takes the places of large entries for random; where they repeat every p entries, as in a
 * matrix whose rows are a multiple of p, only the room bounds the count. Ties are sent all; or none, where they do not
 * fit and others lie above. The published form compares |u| with `mean + z·std`, which misses when the mean is not 0,
 * and halves or stretches that threshold up to three times, with no bound on the count. Biased: wrap it in
 * `withErrorFeedback`.
 *
 * A gradient that is not finite throughout makes all values NaN.
 *
 * @throws ArgumentError for a density outside (0, 1].
 * Cost: 8 bytes per sent entry, at most `8⌈4k/3⌉`, by all-gather; and 4(P−1) bytes of counts. Reads the gradient once,
 * and a sample.
 * @example withErrorFeedback(gaussianKCompressor({ density: 0.001 }))
 * Source: Shi et al. 2019, arXiv 1911.08772, Algorithm 1 (Gaussian-k).
 */
export const gaussianKCompressor = ({ density }: GaussianKCompressorOptions): Compressor<[], SparsePayload> => {
  checkDensity("gaussianKCompressor", density);
  const select = (flat: Tensor): SparsePayload => {
    const n = flat.shape[0]!;
    if (n === 0) return { values: flat, indices: arange(0) };
    const [k, capacity] = [keptEntries(density, n), mostEntries(density, n)];
    const size = sampleSizeOf(n, k);
    const most = (capacity * size.count) / n;
    const bound = k === n ? full([], 0) : magnitudeBound(sampleMagnitudes(flat, size), rankInSample(k, n, size), most);
    const { finite, values, indices } = reachingEntries(flat, bound, capacity);
    return nanUnless(finite, { values, indices });
  };
  return defineSparsifier({
    name: `gaussian-k ${density}`,
    capacity: (n) => mostEntries(density, n),
    ragged: true,
    select,
  });
};
