import { ArgumentError, full, maximum, type Tensor } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";
import { keptEntries } from "./density.ts";
import { magnitudeBound } from "./magnitude-bound.ts";
import { rankInSample, sampleMagnitudes, sampleSizeOf } from "./magnitude-sample.ts";
import { reachingEntries } from "./reaching-entries.ts";
import { nanUnless, type SparsePayload } from "./sparse-payload.ts";
import { defineSparsifier } from "./sparsifier.ts";

export interface ThresholdCompressorOptions {
  /** Least magnitude that is sent, in the unit of the gradient; above 0. */
  readonly threshold: number;
  /** Share of entries for which there is room, in (0, 1]. */
  readonly capacity: number;
}

/** A magnitude that `room` entries reach, and hardly ever more. */
const boundForRoom = (flat: Tensor, room: number): Tensor => {
  const n = flat.shape[0]!;
  const size = sampleSizeOf(n, room);
  return magnitudeBound(sampleMagnitudes(flat, size), rankInSample(room, n, size, -4), (room * size.count) / n);
};

/**
 * Send every entry of magnitude `threshold` or more; how many there are is known at run time only.
 *
 * There is room for `c = max(1, ⌊capacity · n⌋)`. Where more reach the threshold, those are taken that reach a higher
 * one, at which c lie (see `magnitudeBound`). Of more than 2¹⁸ entries only a sample of s is counted, and four standard
 * deviations of its count, `4·√(c·n/s)` entries, stay free. Ties are taken all; or none, where they do not fit and
 * others lie above, or else the first c of them. Taking the lowest positions at once would starve the others for ever.
 *
 * What is not sent is smaller than the threshold while there is such room: `‖u − C(u)‖² < n · threshold²`. Biased: wrap
 * it in `withErrorFeedback`.
 *
 * A gradient that is not finite throughout makes all values NaN.
 *
 * @throws ArgumentError for a threshold that is not a positive number, or a capacity outside (0, 1].
 * Cost: 8 bytes per sent entry, at most 8c, by all-gather; and 4(P−1) bytes of counts. Reads the gradient once, and a
 * sample.
 * @example withErrorFeedback(thresholdCompressor({ threshold: 1e-3, capacity: 0.05 }))
 * Source: Strom 2015, Interspeech (fixed threshold with residual); Sahu et al. 2021, arXiv 2108.00951 (hard threshold).
 */
export const thresholdCompressor = ({
  threshold,
  capacity,
}: ThresholdCompressorOptions): Compressor<[], SparsePayload> => {
  if (!(threshold > 0 && threshold < Infinity))
    throw new ArgumentError(
      `thresholdCompressor: threshold ${threshold} is not a positive number; use a magnitude such as 1e-3`,
    );
  if (!(capacity > 0 && capacity <= 1))
    throw new ArgumentError(
      `thresholdCompressor: capacity ${capacity} is not a share in (0, 1]; 0.05 has room for one entry in twenty`,
    );
  const select = (flat: Tensor): SparsePayload => {
    const n = flat.shape[0]!;
    const room = keptEntries(capacity, n);
    const bound = room === n ? full([], threshold) : maximum(boundForRoom(flat, room), threshold);
    const { values, indices, finite } = reachingEntries(flat, bound, room);
    return nanUnless(finite, { values, indices });
  };
  return defineSparsifier({
    name: `threshold ${threshold}`,
    capacity: (n) => keptEntries(capacity, n),
    ragged: true,
    select,
  });
};
