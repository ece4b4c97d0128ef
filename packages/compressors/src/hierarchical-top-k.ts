import {
  allGather,
  ArgumentError,
  axisIndex,
  equal,
  iota,
  multiply,
  pad,
  reduceScatter,
  reshape,
  slice,
  subtract,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { AggregateContext } from "./context.ts";
import type { Aggregator } from "./aggregator.ts";
import { lengthOf } from "./bucket.ts";
import { checkDensity, numKeptEntries, minKeptEnergyShare } from "./density.ts";
import { densify, largestEntries } from "./sparse-entries.ts";
import { packSparse, unpackSparse } from "./sparse-payload.ts";

export interface HierarchicalTopKOptions {
  /** Share of its shard that a rank sends to other hosts, in (0, 1]. */
  readonly density: number;
  /** Mesh axis of the ranks of one host. */
  readonly inside: string;
  /** Mesh axis of the ranks with the same index on their hosts. */
  readonly across: string;
  /** Number of ranks along `inside`. */
  readonly ranksPerHost: number;
}

/** Returns the length of a shard. The last shards are padded with zeros. */
const shardLength = (n: number, ranksPerHost: number): number => Math.ceil(n / ranksPerHost);

/** Returns a vector of zeros, `[h · s]` for h shards of s entries, in which `shard` replaces this rank's range. */
const embedShard = (shard: Tensor, axis: string, ranksPerHost: number): Tensor => {
  const isOwn = equal(iota([ranksPerHost, 1], "i32", { dim: 0 }), axisIndex(axis));
  return reshape(where(isOwn, reshape(shard, [1, shard.shape[0]!]), 0), [ranksPerHost * shard.shape[0]!]);
};

/**
 * Hierarchical top-k: sums dense gradients within a host, over the fast network, and exchanges only the top-k of these
 * sums between hosts, over the slow network. Steps: reduce-scatter within each host; all-gather of each shard's top-k
 * entries across hosts; all-gather of the shards within each host.
 *
 * With h ranks on each of m hosts, rank r of a host owns shard r, of s = ⌈n/h⌉ entries, and sends C(S), the
 * `k' = max(1, ⌊density · s⌋)` largest entries of its host's sum S. The unsent part `S − C(S)` counts for the owner:
 * `sent = u − (S − C(S))` in its own shard, and `sent = u` in all other shards. The sum of `sent` over a host is C(S),
 * and over all ranks P times the mean. So the residual of error feedback is `S − C(S)` in a rank's own shard and 0 in
 * other shards, and becomes part of the next sum. For entries that are sent, the residual is exactly 0. For other
 * entries, the subtraction rounds to 2⁻²⁴ of the larger operand.
 *
 * With h = 1, the result equals top-k. With h > 1, there is no contraction per rank, because `S − C(S)` on the owner
 * includes unsent entries of other ranks on the host. Biased: wrap it in `withErrorFeedback`.
 *
 * @throws ArgumentError if the density is outside (0, 1], ranksPerHost is below 1, or the mesh has other sizes along
 * `inside` and `across`.
 * Cost: `8s(h − 1)` bytes inside and `8k'(m − 1)` across, sent per rank.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(
 *   hierarchicalTopKAggregator({ density: 0.25, inside: "local", across: "hosts", ranksPerHost: 1 }),
 * );
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [0, -4, 0, 0]
 * ```
 * Source: Shi et al. 2020, arXiv 2010.10458 (hierarchical top-k communication).
 */
export const hierarchicalTopKAggregator = ({
  density,
  inside,
  across,
  ranksPerHost,
}: HierarchicalTopKOptions): Aggregator<[]> => {
  checkDensity("hierarchicalTopKAggregator", density);
  if (!(Number.isInteger(ranksPerHost) && ranksPerHost >= 1))
    throw new ArgumentError(
      `hierarchicalTopKAggregator: ranksPerHost ${ranksPerHost} is not a positive integer; use an integer from 1`,
    );

  const checkMesh = ({ axis }: AggregateContext): void => {
    const [numRanks, numInside, numAcross] = [axisSize(axis), axisSize(inside), axisSize(across)];
    if (numInside === ranksPerHost && numInside * numAcross === numRanks) return;
    throw new ArgumentError(
      `hierarchicalTopKAggregator: the mesh has ${numInside} ranks along "${inside}" and ${numAcross} along "${across}", for ${numRanks} along "${axis}" ` +
        `and ${ranksPerHost} per host; "${inside}" must have ${ranksPerHost} ranks, and the product of both must be ${numRanks}: name both axes in the mesh`,
    );
  };

  return {
    name: `hierarchical top-k ${density}`,
    biased: true,
    scope: "bucket",
    contraction: (bucket) =>
      ranksPerHost === 1 ? minKeptEnergyShare(numKeptEntries(density, lengthOf(bucket)), lengthOf(bucket)) : undefined,
    init: () => [],
    aggregate: (gradient, state, bucket, context) => {
      checkMesh(context);
      const { axis, collective } = context;
      const n = lengthOf(bucket);
      if (n === 0) return { mean: gradient, sent: gradient, state };
      const length = shardLength(n, ranksPerHost);
      const k = numKeptEntries(density, length);
      const hostSum = reduceScatter(pad(gradient, [[0, ranksPerHost * length - n]]), inside, "sum", collective);
      const largest = largestEntries(hostSum, k);
      const sum = densify(unpackSparse(allGather(packSparse(largest), across, collective)), length);
      const unsent = subtract(hostSum, densify(largest, length));
      return {
        mean: slice(allGather(multiply(sum, 1 / axisSize(axis)), inside, collective), [0], [n]),
        sent: subtract(gradient, slice(embedShard(unsent, inside, ranksPerHost), [0], [n])),
        state,
      };
    },
    bytesSent: (bucket, worldSize) => {
      if (worldSize % ranksPerHost !== 0)
        throw new ArgumentError(
          `hierarchicalTopKAggregator: ${worldSize} ranks are not divisible by ${ranksPerHost} ranks per host; use a multiple of ${ranksPerHost}, or another ranksPerHost`,
        );
      const length = shardLength(lengthOf(bucket), ranksPerHost);
      return 8 * length * (ranksPerHost - 1) + 8 * numKeptEntries(density, length) * (worldSize / ranksPerHost - 1);
    },
  };
};
