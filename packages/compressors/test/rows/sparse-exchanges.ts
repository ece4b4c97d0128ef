import { axisSize } from "@skein/tensor-core/backend";
import { type Aggregator, lengthOf, withErrorFeedback } from "../../src/index.ts";
import { gTopKAggregator } from "../../src/g-top-k.ts";
import { hierarchicalTopKAggregator } from "../../src/hierarchical-top-k.ts";
import { okTopKAggregator } from "../../src/ok-top-k.ts";
import { hostAxes } from "../host-axes.ts";
import type { Row } from "./row.ts";

const kept = (density: number, n: number): number => Math.min(n, Math.max(1, Math.floor(density * n)));

/** Returns two ranks per host if the world size is even, otherwise the world size (a single host). */
const ranksPerHostOf = (worldSize: number): number => (worldSize % 2 === 0 ? 2 : worldSize);

/**
 * Returns hierarchical top-k for any world size, because the laws test one row on worlds of many sizes. In a job, the
 * number of ranks per host is fixed.
 */
const hierarchical = (density: number): Aggregator<[]> => {
  const sized = (ranksPerHost: number): Aggregator<[]> =>
    hierarchicalTopKAggregator({ density, inside: "inside", across: "across", ranksPerHost });
  return {
    ...sized(1),
    aggregate: (...args) => sized(axisSize("inside")).aggregate(...args),
    contraction: (bucket, worldSize) => sized(ranksPerHostOf(worldSize)).contraction!(bucket, worldSize),
    bytesSent: (bucket, worldSize) => sized(ranksPerHostOf(worldSize)).bytesSent(bucket, worldSize),
  };
};

/** Returns the largest power of two that is at most P. */
const coreOf = (worldSize: number): number => 2 ** Math.floor(Math.log2(worldSize));

const common = { permutation: true, scale: true, odd: true, randomised: false, denseTolerance: 2 ** -20 } as const;
/**
 * Returns the contraction of top-k if there is a single rank (per host), otherwise undefined. With several ranks, all
 * entries of one rank may be dropped in favor of other ranks' entries.
 */
const contraction =
  (density: number): NonNullable<Row["contraction"]> =>
  (bucket, worldSize) =>
    worldSize === 1 ? kept(density, lengthOf(bucket)) / Math.max(1, lengthOf(bucket)) : undefined;

const gTopKBytes =
  (density: number): Row["bytes"] =>
  (bucket, worldSize) => {
    const k = kept(density, lengthOf(bucket));
    const core = coreOf(worldSize);
    const beyond = worldSize - core;
    return (core * Math.log2(core) * 8 * k + beyond * (8 * k + 8 * k + 4 * Math.ceil(k / 32))) / worldSize;
  };

export const sparseExchangeRows: readonly Row[] = [
  {
    ...common,
    name: "g-top-k",
    aggregator: gTopKAggregator({ density: 0.2 }),
    bytes: gTopKBytes(0.2),
    contraction: contraction(0.2),
    dense: gTopKAggregator({ density: 1 }),
    conservation: 2 ** -20,
  },
  {
    ...common,
    name: "g-top-k with error feedback",
    aggregator: withErrorFeedback(gTopKAggregator({ density: 0.25 })),
    bytes: gTopKBytes(0.25),
    contraction: contraction(0.25),
    dense: withErrorFeedback(gTopKAggregator({ density: 1 })),
    conservation: 2 ** -20,
  },
  {
    ...common,
    name: "hierarchical top-k",
    permutation: false, // permutation would change the shards, and therefore the selection
    aggregator: hierarchical(0.2),
    bytes: (bucket, worldSize) => {
      const ranksPerHost = ranksPerHostOf(worldSize);
      const shard = Math.ceil(lengthOf(bucket) / ranksPerHost);
      const inside = (2 * (ranksPerHost - 1) * 4 * shard * ranksPerHost) / ranksPerHost;
      return inside + 8 * kept(0.2, shard) * (worldSize / ranksPerHost - 1);
    },
    dense: hierarchical(1),
    conservation: 2 ** -20,
    axes: (worldSize) => hostAxes(ranksPerHostOf(worldSize), worldSize / ranksPerHostOf(worldSize)),
    contraction: contraction(0.2),
  },
  {
    ...common,
    name: "ok-top-k",
    aggregator: okTopKAggregator({ density: 0.2 }),
    bytesAreMost: true,
    bytes: (bucket, worldSize) => {
      const n = lengthOf(bucket);
      if (worldSize === 1 || n === 0) return 0;
      const k = kept(0.2, n);
      const reduce = 8 * Math.min(k, (worldSize - 1) * Math.ceil(n / worldSize));
      const gather = (8 * k * (worldSize - 1)) / worldSize;
      const histograms = 4 * ((2 * (worldSize - 1)) / worldSize) * 4 * 256;
      return reduce + gather + histograms + 4 * (worldSize - 1);
    },
    contraction: contraction(0.2),
    dense: okTopKAggregator({ density: 1 }),
    conservation: 2 ** -20,
  },
];
