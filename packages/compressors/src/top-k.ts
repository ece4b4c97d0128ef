import { ArgumentError } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";
import { checkDensity, numKeptEntries, minKeptEnergyShare } from "./density.ts";
import type { SparsePayload } from "./sparse-payload.ts";
import { largestEntries } from "./sparse-entries.ts";
import { defineSparsifier } from "./sparsifier.ts";

export type { SparsePayload } from "./sparse-payload.ts";

/** Number of entries to keep, as a share (`density`) or as a count (`k`). */
export type TopKCompressorOptions =
  | { readonly density: number; readonly k?: never }
  | { readonly k: number; readonly density?: never };

/**
 * Top-k: keeps exactly the `k` entries of largest magnitude. Among equal magnitudes, lower indices are preferred. A NaN
 * counts as largest: it is sent and stops the step, instead of staying in a residual unnoticed.
 *
 * `k = max(1, ⌊density · n⌋)`, density in (0, 1]; or a fixed `k`, at most n. Contraction:
 * `‖u − C(u)‖² ≤ (1 − k/n)‖u‖²`. Biased: wrap it in `withErrorFeedback`.
 *
 * @throws ArgumentError if the density is outside (0, 1], or k is below 1.
 * Cost: 8k bytes per rank (f32 value, i32 index) in one message, by all-gather: 8k(P−1) sent.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(topKCompressor({ density: 0.25 }));
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [0, -4, 0, 0]
 * ```
 * Source: Aji and Heafield 2017, arXiv 1704.05021; Shi et al. 2019, arXiv 1911.08772 (contraction).
 */
export const topKCompressor = ({ density, k }: TopKCompressorOptions): Compressor<[], SparsePayload> => {
  if (density !== undefined) checkDensity("topKCompressor", density);
  if (k !== undefined && !(Number.isInteger(k) && k >= 1))
    throw new ArgumentError(`topKCompressor: k ${k} is not a positive integer; use an integer from 1`);
  const capacity = (n: number): number => (density === undefined ? Math.min(n, k!) : numKeptEntries(density, n));
  return defineSparsifier({
    name: density === undefined ? `top-${k}` : `top-k ${density}`,
    capacity,
    contraction: (n) => minKeptEnergyShare(capacity(n), n),
    select: (flat) => largestEntries(flat, capacity(flat.shape[0]!)),
  });
};
