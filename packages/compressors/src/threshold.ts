import { absolute, all, ArgumentError, equal, full, greater, greaterEqual, isFinite, logicalAnd, type Tensor } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";
import { keptEntries } from "./density.ts";
import { levelOfKth, levelsAround, numLevelsAround } from "./magnitude-level.ts";
import { firstThenSecond, type SparsePayload, takeEntries } from "./sparse-payload.ts";
import { defineSparsifier } from "./sparsifier.ts";

export interface ThresholdCompressorOptions {
  /** Least magnitude that is sent, in the unit of the gradient; above 0. */
  readonly threshold: number;
  /** Share of entries for which there is room, in (0, 1]. */
  readonly capacity: number;
}

/**
 * Send every entry of magnitude `threshold` or more; how many there are is known at run time only.
 *
 * There is room for `c = max(1, ⌊capacity · n⌋)`. Where more reach the threshold, c of the largest are taken: of those within 0.1 % of the
 * smallest taken (2.5 % at 100 times the threshold) the ones at lower positions. Taking the lowest positions at once would starve the others for ever.
 *
 * What is not sent is smaller than the threshold while there is room: `‖u − C(u)‖² < n · threshold²`. Biased: wrap it in `withErrorFeedback`.
 *
 * A gradient that is not finite throughout makes all values NaN.
 *
 * @throws ArgumentError for a threshold that is not a positive number, or a capacity outside (0, 1].
 * Cost: 8 bytes per sent entry, at most 8c, by all-gather; and 4(P−1) bytes of counts. Reads the gradient about three times.
 * @example withErrorFeedback(thresholdCompressor({ threshold: 1e-3, capacity: 0.05 }))
 * Source: Strom 2015, Interspeech (fixed threshold with residual); Sahu et al. 2021, arXiv 2108.00951 (hard threshold).
 */
export const thresholdCompressor = ({ threshold, capacity }: ThresholdCompressorOptions): Compressor<[], SparsePayload> => {
  if (!(threshold > 0 && threshold < Infinity))
    throw new ArgumentError(`thresholdCompressor: threshold ${threshold} is not a positive number; use a magnitude such as 1e-3`);
  if (!(capacity > 0 && capacity <= 1))
    throw new ArgumentError(`thresholdCompressor: capacity ${capacity} is not a share in (0, 1]; 0.05 has room for one entry in twenty`);
  const select = (flat: Tensor): SparsePayload => {
    const room = keptEntries(capacity, flat.shape[0]!);
    const magnitudes = absolute(flat);
    const reaching = greaterEqual(magnitudes, threshold);
    const levels = levelsAround(magnitudes, full([], threshold));
    const { level } = levelOfKth(levels, numLevelsAround, room);
    const [above, within] = [greater(levels, level), equal(levels, level)].map((mask) => logicalAnd(mask, reaching)) as [Tensor, Tensor];
    return takeEntries(flat, firstThenSecond(above, within, room), all(isFinite(flat)));
  };
  return defineSparsifier({ name: `threshold ${threshold}`, capacity: (n) => keptEntries(capacity, n), ragged: true, select });
};
