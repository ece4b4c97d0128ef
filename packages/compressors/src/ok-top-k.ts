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
import { checkDensity, numKeptEntries, minKeptEnergyShare } from "./density.ts";
import { radixRounds, selectGreatest } from "./radix-select.ts";
import { densify, largestEntries } from "./sparse-entries.ts";
import { packSparse, type SparsePayload, unpackSparse } from "./sparse-payload.ts";

export interface OkTopKOptions {
  /** Density k/n, in (0, 1]. */
  readonly density: number;
}

const modulo = (x: Tensor, divisor: number): Tensor => subtract(x, multiply(divide(x, divisor), divisor));

/**
 * Returns the offset, in ranks, by which the owners of a block's entries are rotated. The vector is split into blocks
 * of P consecutive entries, and each rank owns one entry per block: offset p belongs to rank (p + rotation) mod P. The
 * rotation is a hash of the block index (multiplicative: Knuth, vol. 3, §6.4), so that a column of large entries is not
 * owned by a single rank.
 */
const rotationOf = (block: Tensor, numRanks: number): Tensor => {
  const hash = shiftRight(multiply(bitcast(block, "u32"), 2654435761), 16);
  return modulo(bitcast(hash, "i32"), numRanks);
};

/**
 * Sends each rank's entries to the owners of their indices, and sums them on the owners in rank order: f32 [⌈n/P⌉], one
 * element per block.
 */
const reduceRegions = (
  own: SparsePayload,
  length: number,
  axis: string,
  collective: CollectiveOptions | undefined,
): Tensor => {
  const numRanks = axisSize(axis);
  const block = divide(own.indices, numRanks);
  const owner = modulo(add(modulo(own.indices, numRanks), rotationOf(block, numRanks)), numRanks);
  const rows = packSparse({ indices: block, values: own.values });
  const capacity = Math.min(own.indices.shape[0]!, length);
  const chunks = Array.from({ length: numRanks }, (_, rank) => nonzero(equal(owner, rank), capacity));
  const message = concat(chunks.map(({ indices }) => gather(rows, indices)));
  const counts = stack(chunks.map(({ count }) => count));
  return densify(unpackSparse(raggedAllToAll(message, counts, axis, collective).x), length);
};

/**
 * Gathers the k greatest nonzero sums over all ranks' regions. The result has P · min(k, region length) entries, equal
 * on all ranks. Unused entries are zeros.
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
  const lane = modulo(add(subtract(rank, rotationOf(blocks, numRanks)), numRanks), numRanks);
  const rows = packSparse({ indices: add(multiply(blocks, numRanks), lane), values: gather(region, blocks) });
  return unpackSparse(raggedAllGather(rows, count, axis, collective).x);
};

/**
 * Ok-Topk: adds the top-k entries of all ranks, and keeps exactly the k greatest sums. Traffic per rank does not grow
 * with P. Each rank owns n/P indices. A ragged all-to-all sends entries to their owners, and the owners add the
 * entries. A radix selection over all ranks finds the k-th greatest sum. A ragged all-gather distributes all sums above
 * the k-th, and the first sums equal to it, to all ranks. `k = max(1, ⌊density · n⌋)`; sums equal to 0 are never sent.
 *
 * An entry counts as sent if the sum at its index is among the k greatest sums. An index is sent or dropped for all
 * ranks together, so nothing is lost.
 *
 * Differs from the publication. Each rank owns one of every P consecutive indices, chosen by a hash, instead of a range
 * whose limits change every 64 steps. So each rank receives about k entries, however large entries are distributed over
 * layers or columns. The threshold is exact in every step, instead of estimated every 32 steps. There is no state.
 *
 * Biased: wrap it in `withErrorFeedback`.
 *
 * @throws ArgumentError if the density is outside (0, 1].
 * Cost: about `16k (P−1)/P` bytes sent per rank, plus at most 8k/P bytes (included in `bytesSent`), plus
 * `(P−1)(8192/P + 4)` bytes for the selection, the largest term below k ≈ 500.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(okTopKAggregator({ density: 0.25 }));
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [0, -4, 0, 0]
 * ```
 * Source: Li and Hoefler 2022, arXiv 2201.07598 (Ok-Topk).
 */
export const okTopKAggregator = ({ density }: OkTopKOptions): Aggregator<[]> => {
  checkDensity("okTopKAggregator", density);
  return {
    name: `ok-top-k ${density}`,
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
      const k = numKeptEntries(density, n);
      const others = worldSize - 1;
      const toOwners = 8 * Math.min(k, others * Math.ceil(n / worldSize));
      const toAll = (8 * k * others) / worldSize;
      const selection = (radixRounds.count * radixRounds.bytes * 2 * others) / worldSize + 4 * others;
      return n === 0 ? 0 : toOwners + toAll + selection;
    },
  };
};
