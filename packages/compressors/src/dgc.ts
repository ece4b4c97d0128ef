import type { Aggregator } from "./aggregator.ts";
import { type MomentumCorrectionState, withMomentumCorrection } from "./momentum-correction.ts";
import { topKCompressor } from "./top-k.ts";

export interface DgcAggregatorOptions {
  /** Share of entries to send, in (0, 1]. */
  readonly density: number;
  /** Factor of the past, in [0, 1). Default: 0.9, as in the paper. */
  readonly momentum?: number;
  /** Norm that the mean gradient of a bucket may have, see `withMomentumCorrection`. Default: no clipping. */
  readonly clipNorm?: number;
}

/**
 * Deep Gradient Compression: the entries of largest magnitude, with momentum correction, factor masking and local
 * clipping.
 *
 * The optimizer is plain SGD: momentum is in here. Selection is exact, where the paper estimates the threshold from a
 * sample. Warm-up of the density is by `densityPhases`; the paper goes 0.25, 0.0625, 0.015625, 0.004, 0.001, an epoch
 * each.
 *
 * @throws ArgumentError as its parts do.
 * Cost: 8k bytes per rank, by all-gather: 8k(P−1) sent; two f32 per element of state.
 * @example densityPhases([[0, 0.25], [epoch, 0.0625], [2 * epoch, 0.001]], (density) => dgcAggregator({ density }))
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
