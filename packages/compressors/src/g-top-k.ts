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
import { checkDensity, keptEntries, keptShare } from "./density.ts";
import { densify, largestEntries } from "./sparse-entries.ts";
import { contains, mergeLargest } from "./sparse-merge.ts";
import { packSparse, type SparsePayload, unpackSparse } from "./sparse-payload.ts";

export interface GTopKOptions {
  /** k/n in (0, 1]. */
  readonly density: number;
}

/**
 * The greatest power of two up to P ranks merge in rounds; each of the others gives its entries to one of them, and
 * gets the result.
 */
const coreOf = (numRanks: number): number => 2 ** (31 - Math.clz32(numRanks));

interface Merged {
  /** The packed result, u32 [k, 2], the same on all ranks. */
  readonly message: Tensor;
  /** bool [k]: which of this rank's own entries are part of it. */
  readonly kept: Tensor;
}

const mergeRounds = (
  own: SparsePayload,
  k: number,
  axis: string,
  collective: CollectiveOptions | undefined,
): Merged => {
  const numRanks = axisSize(axis);
  const core = coreOf(numRanks);
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
    // Both partners merge the lower rank's entries with the higher's, in this order: the same operations, the same
    // bits.
    const [lower, higher] = [where(isLower, message, arrived), where(isLower, arrived, message)];
    const merged = mergeLargest(unpackSparse(lower), unpackSparse(higher), k);
    message = packSparse(merged);
    // What has been dropped once stays so, even if its position comes back by another rank's entry: that one has other
    // mass.
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
 * Add up the ranks' top-k entries pair by pair, keeping k after each addition: log₂P rounds, in which rank r and rank r
 * ⊕ 2ⁱ exchange what they have. The mean has at most k entries, `k = max(1, ⌊density · n⌋)`. Each merge is sparse: O(k
 * log k).
 *
 * Nothing is lost. All ranks of a group hold the group's entries after each round, so each knows when its own were
 * dropped; a position carries the entries of exactly those ranks for which it was never dropped. `sent` holds these
 * whole, and error feedback keeps the others. (To put back only what is absent from the result, as first published,
 * loses what was dropped on the way while another rank's entry came through.)
 *
 * Reduction tree and broadcast, the published form, need 2 log₂P steps of 8k bytes, and ranks that have retired do not
 * see what is dropped later. Here it is log₂P steps: half as long. A rank sends 8k log₂P bytes, with the tree 16k
 * (P−1)/P on average: more in total from P = 4 on.
 *
 * For P = C + E, C the greatest power of two, E ranks send theirs to a partner first, and get the result with a bit for
 * each entry: two more steps. The result need not be the k greatest entries of the sum: of normal gradients (n = 64, k
 * = 6, P = 8) it shares 0.55 of their positions. On one rank it is top-k. On several it has no contraction of its own:
 * all entries of a rank may be dropped for those of others. Biased: wrap it in `withErrorFeedback`.
 *
 * @throws ArgumentError for a density outside (0, 1].
 * Cost: `(8k (C log₂C + 2E) + 4⌈k/32⌉ E) / P` bytes sent per rank, on average; 8k log₂P for a power of two.
 * @example withErrorFeedback(gTopKAggregator({ density: 0.001 }))
 * Source: Shi et al. 2019, arXiv 1901.04359 (gTop-k).
 */
export const gTopKAggregator = ({ density }: GTopKOptions): Aggregator<[]> => {
  checkDensity("gTopKAggregator", density);
  return {
    name: `g-top-k ${density}`,
    biased: true,
    scope: "bucket",
    contraction: (bucket, worldSize) =>
      worldSize === 1 ? keptShare(keptEntries(density, lengthOf(bucket)), lengthOf(bucket)) : undefined,
    init: () => [],
    aggregate: (gradient, state, bucket, { axis, collective }) => {
      const n = lengthOf(bucket);
      if (n === 0) return { mean: gradient, sent: gradient, state };
      const k = keptEntries(density, n);
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
      const k = keptEntries(density, lengthOf(bucket));
      const core = coreOf(worldSize);
      const numGuests = worldSize - core;
      return (8 * k * (core * Math.log2(core) + 2 * numGuests) + 4 * Math.ceil(k / 32) * numGuests) / worldSize;
    },
  };
};
