import type { Aggregator } from "./aggregator.ts";
import { type MomentumCorrectionState, withMomentumCorrection } from "./momentum-correction.ts";
import { topKCompressor } from "./top-k.ts";

export interface DgcAggregatorOptions {
  /** Share of entries to send, in (0, 1]. */
  readonly density: number;
  /** Momentum factor, in [0, 1). Default: 0.9, as in the paper. */
  readonly momentum?: number;
  /** Maximum norm of a bucket's mean gradient, see `withMomentumCorrection`. Default: no clipping. */
  readonly clipNorm?: number;
}

/**
 * Deep Gradient Compression: sends the entries of largest magnitude, with momentum correction, factor masking and local
 * clipping.
 *
 * Use SGD without momentum as the optimizer, because the compressor includes momentum. Selection is exact, while the
 * paper estimates the threshold from a sample. For warm-up of the density, use `densityPhases`; the paper uses 0.25,
 * 0.0625, 0.015625, 0.004, 0.001, one epoch per density.
 *
 * @throws ArgumentError under the conditions of `topKCompressor` and `withMomentumCorrection`.
 * Cost: 8k bytes per rank, by all-gather: 8k(P−1) sent; state of two f32 per element.
 * @example
 * ```ts
 * const compressor = dgcAggregator({ density: 0.25, momentum: 0.9 });
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [0, -4, 0, 0]
 * ```
 * Source: Lin et al. 2018, arXiv 1712.01887.
 */
export const dgcAggregator = ({
  density,
  momentum = 0.9,
  clipNorm,
}: DgcAggregatorOptions): Aggregator<MomentumCorrectionState<[]>> => ({
  ...withMomentumCorrection(topKCompressor({ density }), { momentum, ...(clipNorm !== undefined && { clipNorm }) }),
  name: `dgc ${density}`,
});
