import {
  add,
  allGather,
  arange,
  axisIndex,
  bitcast,
  bitwiseAnd,
  cast,
  type CollectiveOptions,
  cumsum,
  concat,
  divide,
  equal,
  gather,
  greater,
  less,
  lessEqual,
  logicalAnd,
  logicalOr,
  multiply,
  nonzero,
  notEqual,
  raggedAllGather,
  raggedAllToAll,
  reshape,
  shiftRight,
  stack,
  subtract,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { Aggregator } from "./aggregator.ts";
import { lengthOf } from "./bucket.ts";
import { checkDensity, keptEntries, keptShare } from "./density.ts";
import { radixRounds, selectGreatest } from "./radix-select.ts";
import { densify, largestEntries } from "./sparse-entries.ts";
import { packSparse, type SparsePayload, unpackSparse } from "./sparse-payload.ts";

export interface OkTopKOptions {
  /** k/n in (0, 1]. */
  readonly density: number;
}

const modulo = (x: Tensor, divisor: number): Tensor => subtract(x, multiply(divide(x, divisor), divisor));

/**
 * By how many ranks a block is turned. The vector is cut into blocks of P neighbours, of which each rank owns one: that
 * at place p belongs to rank (p + turn) mod P. The turn is a hash of the block (multiplicative: Knuth, vol. 3, §6.4),
 * so that no hot column of a matrix falls to one rank.
 */
const turnOf = (block: Tensor, numRanks: number): Tensor => {
  const hash = shiftRight(multiply(bitcast(block, "u32"), 2654435761), 16);
  return modulo(bitcast(hash, "i32"), numRanks);
};

/**
 * Bring each rank's entries to the owners of their positions, and add them up there in rank order: f32 [⌈n/P⌉], one
 * slot for each block.
 */
const reduceRegions = (
  own: SparsePayload,
  length: number,
  axis: string,
  collective: CollectiveOptions | undefined,
): Tensor => {
  const numRanks = axisSize(axis);
  const block = divide(own.indices, numRanks);
  const owner = modulo(add(modulo(own.indices, numRanks), turnOf(block, numRanks)), numRanks);
  const rows = packSparse({ indices: block, values: own.values });
  const capacity = Math.min(own.indices.shape[0]!, length);
  const chunks = Array.from({ length: numRanks }, (_, rank) => nonzero(equal(owner, rank), capacity));
  const message = concat(chunks.map(({ indices }) => gather(rows, indices)));
  const counts = stack(chunks.map(({ count }) => count));
  return densify(unpackSparse(raggedAllToAll(message, counts, axis, collective).x), length);
};

/**
 * The k greatest of all ranks' regions, nothing that is 0: P·C entries, zeros where there is none; the same on all
 * ranks.
 */
const gatherGreatest = (
  region: Tensor,
  k: number,
  axis: string,
  collective: CollectiveOptions | undefined,
): SparsePayload => {
  const numRanks = axisSize(axis);
  const rank = axisIndex(axis);
  const length = region.shape[0]!;
  const keys = bitwiseAnd(bitcast(region, "i32"), 0x7fffffff);
  const { threshold, numTies } = selectGreatest(keys, k, axis, collective);
  const isTie = logicalAnd(equal(keys, threshold), greater(keys, 0));
  const running = cumsum(cast(isTie, "i32"));
  const tiesOfRanks = allGather(reshape(sum(cast(isTie, "i32")), [1]), axis, collective);
  const tiesBefore = sum(where(less(arange(numRanks), rank), tiesOfRanks, 0));
  const chosen = logicalOr(greater(keys, threshold), logicalAnd(isTie, lessEqual(add(running, tiesBefore), numTies)));
  const { indices: blocks, count } = nonzero(chosen, Math.min(k, length));
  const lane = modulo(add(subtract(rank, turnOf(blocks, numRanks)), numRanks), numRanks);
  const rows = packSparse({ indices: add(multiply(blocks, numRanks), lane), values: gather(region, blocks) });
  return unpackSparse(raggedAllGather(rows, count, axis, collective).x);
};

/**
 * Keep of the sum of all ranks' top-k entries the k greatest, exactly, for a traffic that does not grow with P: each
 * rank owns n/P positions; entries go to their owners (ragged all-to-all) and are added there; the k-th greatest sum is
 * found by a radix selection over all ranks; what is greater, and the first of what equals it, goes to all (ragged
 * all-gather). `k = max(1, ⌊density · n⌋)`; sums that are 0 are never sent.
 *
 * An entry is sent where the sum at its position is among the k: a position is kept or dropped for all ranks at once,
 * so nothing is lost.
 *
 * Not as published: each rank owns one position of every P neighbours, chosen by a hash, in place of a range whose ends
 * are moved every 64 steps, so each receives about k entries, from whatever layers or columns they come; and the
 * threshold is exact in every step, not estimated every 32. There is no state.
 *
 * Biased: wrap it in `withErrorFeedback`.
 *
 * @throws ArgumentError for a density outside (0, 1].
 * Cost: about `16k (P−1)/P` bytes sent per rank, at most 8k/P more (`bytesSent` counts these in); and `(P−1)(8192/P +
 * 4)` for the selection, which outweighs the entries below k ≈ 500.
 * @example withErrorFeedback(okTopKAggregator({ density: 0.01 }))
 * Source: Li and Hoefler 2022, arXiv 2201.07598 (Ok-Topk).
 */
export const okTopKAggregator = ({ density }: OkTopKOptions): Aggregator<[]> => {
  checkDensity("okTopKAggregator", density);
  return {
    name: `ok-top-k ${density}`,
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
      const numRanks = axisSize(axis);
      if (numRanks === 1) {
        const sent = densify(own, n);
        return { mean: sent, sent, state };
      }
      const region = reduceRegions(own, Math.ceil(n / numRanks), axis, collective);
      const total = densify(gatherGreatest(region, k, axis, collective), n);
      const kept = notEqual(gather(total, own.indices), 0);
      return {
        mean: multiply(total, 1 / numRanks),
        sent: densify({ indices: own.indices, values: where(kept, own.values, 0) }, n),
        state,
      };
    },
    bytesSent: (bucket, worldSize) => {
      if (worldSize === 1) return 0;
      const n = lengthOf(bucket);
      const k = keptEntries(density, n);
      const others = worldSize - 1;
      const toOwners = 8 * Math.min(k, others * Math.ceil(n / worldSize));
      const toAll = (8 * k * others) / worldSize;
      const selection = (radixRounds.count * radixRounds.bytes * 2 * others) / worldSize + 4 * others;
      return n === 0 ? 0 : toOwners + toAll + selection;
    },
  };
};
