import { ArgumentError, full, maximum, type Tensor } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";
import { numKeptEntries } from "./density.ts";
import { magnitudeBound } from "./magnitude-bound.ts";
import { rankInSample, sampleMagnitudes, sampleSizeOf } from "./magnitude-sample.ts";
import { selectByBound } from "./select-by-bound.ts";
import { nanUnless, type SparsePayload } from "./sparse-payload.ts";
import { defineSparsifier } from "./sparsifier.ts";

export interface ThresholdCompressorOptions {
  /** Minimum magnitude of entries to send, in the unit of the gradient; above 0. */
  readonly threshold: number;
  /** Maximum number of entries in the message, as a share of all entries, in (0, 1]. */
  readonly capacity: number;
}

/** Returns a magnitude bound that about `room` entries reach: usually slightly fewer entries, very rarely more. */
const boundForRoom = (flat: Tensor, room: number): Tensor => {
  const n = flat.shape[0]!;
  const size = sampleSizeOf(n, room);
  return magnitudeBound(sampleMagnitudes(flat, size), rankInSample(room, n, size, -4), (room * size.count) / n);
};

/**
 * Sends every entry with a magnitude of at least `threshold`. The number of sent entries is known only at run time.
 *
 * The capacity is `c = max(1, ⌊capacity · n⌋)` entries. If more entries reach the threshold, the threshold is raised to
 * a magnitude that c entries reach (see `magnitudeBound`). For more than 2¹⁸ entries, only a sample of s entries is
 * counted, and `4·√(c·n/s)` entries of the capacity stay unused: four standard deviations of the estimate. Tied entries
 * are all sent if they fit. If they do not fit and larger entries exist, none of them is sent, because a selection by
 * lowest index would never send the tied entries with high indices. If no larger entries exist, the first c tied
 * entries are sent.
 *
 * While the capacity suffices, unsent entries are smaller than the threshold: `‖u − C(u)‖² < n · threshold²`. Biased:
 * wrap it in `withErrorFeedback`.
 *
 * A non-finite entry in the gradient makes all values NaN.
 *
 * @throws ArgumentError if the threshold is not a positive number, or the capacity is outside (0, 1].
 * Cost: 8 bytes per sent entry, at most 8c, by all-gather; plus 4(P−1) bytes of counts. Reads the gradient once, plus a
 * sample.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(thresholdCompressor({ threshold: 2.5, capacity: 0.5 }));
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [0, -4, 3, 0]
 * ```
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
      `thresholdCompressor: capacity ${capacity} is not a share in (0, 1]; use a share such as 0.05, one entry in twenty`,
    );
  const select = (flat: Tensor): SparsePayload => {
    const n = flat.shape[0]!;
    const room = numKeptEntries(capacity, n);
    const bound = room === n ? full([], threshold) : maximum(boundForRoom(flat, room), threshold);
    const { values, indices, finite } = selectByBound(flat, bound, room);
    return nanUnless(finite, { values, indices });
  };
  return defineSparsifier({
    name: `threshold ${threshold}`,
    capacity: (n) => numKeptEntries(capacity, n),
    ragged: true,
    select,
  });
};
