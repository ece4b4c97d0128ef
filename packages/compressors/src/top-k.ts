import { ArgumentError, elementCount, reshape, scatterAdd, type Shape, type Tensor, topK, zeros } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";

/** How many entries to keep: a share of them, or a count. */
export type TopKCompressorOptions = { readonly density: number; readonly k?: never } | { readonly k: number; readonly density?: never };

export interface SparsePayload {
  /** f32 [k] */
  readonly values: Tensor;
  /** i32 [k], increasing positions in the flat gradient. */
  readonly indices: Tensor;
}

/**
 * Keep the `k` entries of largest magnitude, exactly; lower positions first among equals. A NaN counts as largest, so
 * it is sent and stops the step, instead of hiding in a residual.
 *
 * `k = max(1, ⌊density · n⌋)`, density in (0, 1]; or a fixed `k`, at most n. Contraction: `‖u − C(u)‖² ≤ (1 − k/n)‖u‖²`.
 * Biased: wrap it in `withErrorFeedback`.
 *
 * @throws ArgumentError for a density outside (0, 1] or a k below 1.
 * Cost: 8k bytes per rank (f32 value, i32 position), by all-gather: 8k(P−1) sent.
 * @example withErrorFeedback(topKCompressor({ density: 0.01 }))
 * Source: Aji and Heafield 2017, arXiv 1704.05021; Shi et al. 2019, arXiv 1911.08772 (contraction).
 */
export const topKCompressor = (options: TopKCompressorOptions): Compressor<[], SparsePayload> => {
  const { density, k } = options;
  if (density !== undefined && !(density > 0 && density <= 1))
    throw new ArgumentError(`topKCompressor: density ${density} is not in (0, 1]; 0.01 keeps one entry in a hundred`);
  if (k !== undefined && !(Number.isInteger(k) && k >= 1))
    throw new ArgumentError(`topKCompressor: k = ${k} entries cannot be kept; use an integer from 1`);
  const keep = (shape: Shape): number => {
    const n = elementCount(shape);
    return Math.min(n, k ?? Math.max(1, Math.floor(density! * n)));
  };
  const scatter = ({ values, indices }: SparsePayload, shape: Shape): Tensor =>
    reshape(scatterAdd(zeros([elementCount(shape)]), indices, values), shape);
  return {
    name: density === undefined ? `top-${k}` : `top-k ${density}`,
    aggregation: "gather",
    biased: true,
    init: () => [],
    encode: (gradient, state) => {
      const [values, indices] = topK(reshape(gradient, [elementCount(gradient.shape)]), keep(gradient.shape), {
        by: "magnitude",
        sorted: false,
      });
      return { payload: { values, indices }, state };
    },
    decode: (payload, { shape }) => scatter(payload, shape),
    // Entries of all ranks lie one after another, and a scatter adds in that order: one pass, the same bits on every rank.
    decodeSum: (payloads, _, { shape }) => scatter(payloads, shape),
    payloadBytes: ({ shape }) => 8 * keep(shape),
  };
};
