import {
  axisIndex,
  bitwiseAnd,
  type CollectiveOptions,
  concat,
  equal,
  flatten,
  full,
  greaterEqual,
  less,
  logicalAnd,
  multiply,
  packBits,
  reshape,
  sendReceive,
  slice,
  type Tensor,
  unpackBits,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { Aggregator } from "./aggregator.ts";
import { lengthOf } from "./bucket.ts";
import { checkDensity, numKeptEntries, minKeptEnergyShare } from "./density.ts";
import { densify, largestEntries } from "./sparse-entries.ts";
import { contains, mergeLargest } from "./sparse-merge.ts";
import { packSparse, type SparsePayload, unpackSparse } from "./sparse-payload.ts";

export interface GTopKOptions {
  /** Density k/n, in (0, 1]. */
  readonly density: number;
}

/**
 * Returns the number of core ranks: the largest power of two up to P. Core ranks merge entries in rounds. Each
 * remaining rank (guest) sends its entries to one core rank (host), and receives the result.
 */
const numCoreRanks = (numRanks: number): number => 2 ** (31 - Math.clz32(numRanks));

interface Merged {
  /** Packed entries of the result, u32 [k, 2], equal on all ranks. */
  readonly message: Tensor;
  /** Mask of this rank's entries that are included in the result, bool [k]. */
  readonly kept: Tensor;
}

const mergeRounds = (
  own: SparsePayload,
  k: number,
  axis: string,
  collective: CollectiveOptions | undefined,
): Merged => {
  const numRanks = axisSize(axis);
  const core = numCoreRanks(numRanks);
  const numGuests = numRanks - core;
  const rank = axisIndex(axis);
  const keptOf = (entries: SparsePayload, merged: SparsePayload): Tensor => contains(merged.indices, entries.indices);

  let message = packSparse(own);
  let kept = full([k], 1, "bool");
  let guest: { readonly entries: SparsePayload; readonly kept: Tensor } | undefined;
  if (numGuests > 0) {
    const toHosts = Array.from({ length: numGuests }, (_, i) => [core + i, i] as const);
    const arrived = sendReceive(message, axis, toHosts, collective);
    const entries = unpackSparse(arrived);
    const merged = mergeLargest(unpackSparse(message), entries, k);
    const isHost = less(rank, numGuests);
    message = where(isHost, packSparse(merged), message);
    kept = keptOf(own, unpackSparse(message));
    guest = { entries, kept: keptOf(entries, merged) };
  }
  for (let distance = 1; distance < core; distance *= 2) {
    const partners = Array.from({ length: core }, (_, from) => [from, from ^ distance] as const);
    const arrived = sendReceive(message, axis, partners, collective);
    const isLower = equal(bitwiseAnd(rank, distance), 0);
    // Both partners merge the entries in the same order, lower rank first, so that both get the same bits.
    const [lower, higher] = [where(isLower, message, arrived), where(isLower, arrived, message)];
    const merged = mergeLargest(unpackSparse(lower), unpackSparse(higher), k);
    message = packSparse(merged);
    // A dropped entry stays dropped, even if an entry of another rank with the same index survives, because that entry
    // has other values.
    kept = logicalAnd(kept, keptOf(own, merged));
    if (guest !== undefined) guest = { ...guest, kept: logicalAnd(guest.kept, keptOf(guest.entries, merged)) };
  }
  if (guest !== undefined) {
    const toGuests = Array.from({ length: numGuests }, (_, i) => [i, core + i] as const);
    const reply = sendReceive(concat([flatten(message), packBits(guest.kept)]), axis, toGuests, collective);
    const isGuest = greaterEqual(rank, core);
    message = where(isGuest, reshape(slice(reply, [0], [2 * k]), [k, 2]), message);
    kept = where(isGuest, unpackBits(slice(reply, [2 * k]), k), kept);
  }
  return { message, kept };
};

/**
 * gTop-k: adds the ranks' top-k entries pairwise, and keeps k entries after each addition. In round i of log₂P rounds,
 * rank r and rank r ⊕ 2ⁱ exchange their entries. The mean has at most k entries, `k = max(1, ⌊density · n⌋)`. Each
 * merge is sparse: O(k log k).
 *
 * Nothing is lost. After each round, all ranks of a group have the group's entries, so each rank knows when its own
 * entries are dropped. The value at an index is the sum over the ranks whose entry at this index was never dropped.
 * `sent` contains a rank's entries that were never dropped, and error feedback adds all other entries to the residual.
 * (The published method only returns entries to the residual whose index is absent from the result. The published
 * method loses an entry that was dropped in a round while another rank's entry with the same index survived.)
 *
 * The published method uses a reduction tree and a broadcast: 2 log₂P steps of 8k bytes, and ranks that have left the
 * tree do not see later drops. This implementation needs only log₂P steps, in which a rank sends 8k log₂P bytes. With
 * the tree, a rank sends 16k (P−1)/P bytes on average, which is less from P = 4 on.
 *
 * For P = C + E, with C the largest power of two, E ranks first send their entries to a partner, and later receive the
 * result with one bit per entry, which takes two more steps. The result may differ from the k largest entries of the
 * sum: for normal gradients (n = 64, k = 6, P = 8), 55 % of the indices agree. On one rank, gTop-k equals top-k. On
 * several ranks, no contraction holds per rank: all entries of one rank may be dropped in favor of other ranks'
 * entries. Biased: wrap it in `withErrorFeedback`.
 *
 * @throws ArgumentError if the density is outside (0, 1].
 * Cost: `(8k (C log₂C + 2E) + 4⌈k/32⌉ E) / P` bytes sent per rank, on average; 8k log₂P for a power of two.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(gTopKAggregator({ density: 0.25 }));
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [0, -4, 0, 0]
 * ```
 * Source: Shi et al. 2019, arXiv 1901.04359 (gTop-k).
 */
export const gTopKAggregator = ({ density }: GTopKOptions): Aggregator<[]> => {
  checkDensity("gTopKAggregator", density);
  return {
    name: `g-top-k ${density}`,
    biased: true,
    scope: "bucket",
    contraction: (bucket, worldSize) =>
      worldSize === 1 ? minKeptEnergyShare(numKeptEntries(density, lengthOf(bucket)), lengthOf(bucket)) : undefined,
    init: () => [],
    aggregate: (gradient, state, bucket, { axis, collective }) => {
      const n = lengthOf(bucket);
      if (n === 0) return { mean: gradient, sent: gradient, state };
      const k = numKeptEntries(density, n);
      const own = largestEntries(gradient, k);
      const { message, kept } = mergeRounds(own, k, axis, collective);
      const sum = densify(unpackSparse(message), n);
      return {
        mean: multiply(sum, 1 / axisSize(axis)),
        sent: densify({ indices: own.indices, values: where(kept, own.values, 0) }, n),
        state,
      };
    },
    bytesSent: (bucket, worldSize) => {
      const k = numKeptEntries(density, lengthOf(bucket));
      const core = numCoreRanks(worldSize);
      const numGuests = worldSize - core;
      return (8 * k * (core * Math.log2(core) + 2 * numGuests) + 4 * Math.ceil(k / 32) * numGuests) / worldSize;
    },
  };
};
