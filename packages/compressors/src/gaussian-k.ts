import { arange, full, type Tensor } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";
import { checkDensity, numKeptEntries } from "./density.ts";
import { magnitudeBound } from "./magnitude-bound.ts";
import { rankInSample, sampleMagnitudes, sampleSizeOf } from "./magnitude-sample.ts";
import { selectByBound } from "./select-by-bound.ts";
import { nanUnless, type SparsePayload } from "./sparse-payload.ts";
import { defineSparsifier } from "./sparsifier.ts";

export interface GaussianKCompressorOptions {
  /** Target share of entries to send, in (0, 1]. */
  readonly density: number;
}

const maxEntries = (density: number, n: number): number => Math.min(n, Math.ceil((4 * numKeptEntries(density, n)) / 3));

/**
 * Gaussian-k: sends about the `k` entries of largest magnitude, selected by a threshold. The threshold is first
 * estimated from a normal distribution, then corrected by counting.
 *
 * The estimate is `t = z·σ` with `z = Φ⁻¹(1 − k/2n)`, `k = max(1, ⌊density · n⌋)`, and σ from the mean magnitude.
 * Counting entries around t then gives the threshold that k entries reach; see `magnitudeBound`. For up to 2¹⁸ entries,
 * all entries are counted. For longer vectors, a sample of s entries is counted: every p-th entry, p prime (see
 * `sampleSizeOf`). Zeros are never sent. If more entries than the capacity `⌈4k/3⌉` reach the threshold, the first
 * `⌈4k/3⌉` of them are sent. With error feedback, the unsent entries grow until the threshold exceeds the entries that
 * were sent.
 *
 * Density error: if all entries are counted, exactly k entries are sent, except for ties. With a sample, k entries are
 * sent on average, with a relative standard deviation of `√((1 − s/n) · n/(k·s))` for any distribution. This is 2.8 %
 * at n = 25·10⁶ and density 0.01, 8.5 % at density 0.001, and at most 12 %. The deviation assumes that large entries
 * are at random indices. If large entries repeat every p entries, as in a matrix whose row length is a multiple of p,
 * only the capacity limits the count. Tied entries are all sent, or none of them if they do not fit and larger entries
 * exist. The published method compares |u| with `mean + z·std`, which is wrong if the mean is not 0, and adjusts this
 * threshold up to three times, without an upper bound of the count. Biased: wrap it in `withErrorFeedback`.
 *
 * A gradient with a non-finite entry makes all values NaN.
 *
 * @throws ArgumentError if the density is outside (0, 1].
 * Cost: 8 bytes per sent entry, at most `8⌈4k/3⌉`, by all-gather; plus 4(P−1) bytes of counts. Reads the gradient once,
 * plus a sample.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(gaussianKCompressor({ density: 0.25 }));
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, 0, -8, 2, 0, -1, 1, 0]));
 * console.log(sent.toNumbers()); // [0, 0, -8, 2, 0, 0, 0, 0]
 * ```
 * Source: Shi et al. 2019, arXiv 1911.08772, Algorithm 1 (Gaussian-k).
 */
export const gaussianKCompressor = ({ density }: GaussianKCompressorOptions): Compressor<[], SparsePayload> => {
  checkDensity("gaussianKCompressor", density);
  const select = (flat: Tensor): SparsePayload => {
    const n = flat.shape[0]!;
    if (n === 0) return { values: flat, indices: arange(0) };
    const [k, capacity] = [numKeptEntries(density, n), maxEntries(density, n)];
    const size = sampleSizeOf(n, k);
    const most = (capacity * size.count) / n;
    const bound = k === n ? full([], 0) : magnitudeBound(sampleMagnitudes(flat, size), rankInSample(k, n, size), most);
    const { finite, values, indices } = selectByBound(flat, bound, capacity);
    return nanUnless(finite, { values, indices });
  };
  return defineSparsifier({
    name: `gaussian-k ${density}`,
    capacity: (n) => maxEntries(density, n),
    ragged: true,
    select,
  });
};
