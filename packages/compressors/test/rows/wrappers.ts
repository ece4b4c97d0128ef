import { elementCount } from "@skein/tensor-core";
import { chainCompressors } from "../../src/chain.ts";
import { withEf21 } from "../../src/ef21.ts";
import { eightBitCompressor } from "../../src/eight-bit.ts";
import { type Bucket, identityCompressor, lengthOf, topKCompressor, withErrorFeedback } from "../../src/index.ts";
import { majorityVoteAggregator } from "../../src/majority-vote.ts";
import { withMomentum } from "../../src/momentum.ts";
import { hasAtLeast, isMatrix, partitionAggregator, perPath } from "../../src/partition.ts";
import { powerSgdAggregator } from "../../src/power-sgd.ts";
import { randomKCompressor } from "../../src/random-k.ts";
import { majorityVoteBytes } from "./quantizers.ts";
import type { Row } from "./row.ts";

const kept = (density: number, n: number): number => Math.min(n, Math.max(1, Math.floor(density * n)));

/** Returns the size in bytes of one 8-bit message with `count` values. */
const eightBit = (count: number, blockSize: number): number => {
  const rows = Math.ceil(count / blockSize);
  return rows * (Math.ceil(count / Math.max(1, rows)) + 4);
};

/** Returns the total number of elements of the tensors for which `when` returns true. */
const among = ({ tensors }: Bucket, when: (path: string, shape: readonly number[]) => boolean): number =>
  tensors.reduce((sum, { path, shape }) => sum + (when(path, shape) ? elementCount(shape) : 0), 0);

const reduced = (elements: number, worldSize: number): number => (8 * (worldSize - 1) * elements) / worldSize;
const share = (density: number) => (bucket: Bucket) => kept(density, lengthOf(bucket)) / Math.max(1, lengthOf(bucket));

const plain = { conservation: 2e-6, permutation: false, scale: true, odd: true, randomised: false } as const;

/** Returns the bytes of sending the largest quarter of the entries with their indices, by all-gather. */
const quarterGathered: Row["bytes"] = (bucket, worldSize) => 8 * kept(0.25, lengthOf(bucket)) * (worldSize - 1);

// A half, so that products are exact on every device.
const halved = { momentum: 0.5 } as const;

/** Returns the bytes of PowerSGD of rank 1, applied to matrices that compress to less than half of their size. */
const powerOfRankOne: Row["bytes"] = ({ tensors }, worldSize) => {
  const elements = tensors.reduce((sum, { shape }) => {
    const [count, m] = [elementCount(shape), shape.at(-1) ?? 1];
    return sum + (shape.length >= 2 && count > 2 * (count / m + m) ? count / m + m : count);
  }, 0);
  return reduced(elements, worldSize);
};

const layered = perPath({
  kernel: topKCompressor({ density: 0.1 }),
  dense: topKCompressor({ k: 5 }),
  w: topKCompressor({ density: 0.5 }),
});

export const wrapperRows: readonly Row[] = [
  {
    ...plain,
    name: "ef21",
    aggregator: withEf21(topKCompressor({ density: 0.25 })),
    bytes: quarterGathered,
    contraction: share(0.25),
    dense: withEf21(topKCompressor({ density: 1 })),
    denseTolerance: 1e-6,
    permutation: true,
    descent: { errorFeedback: false },
  },
  {
    ...plain,
    name: "ef21 with power-sgd",
    aggregator: withEf21(powerSgdAggregator({ rank: 1 })),
    bytes: powerOfRankOne,
    conservation: 8e-6,
    contraction: () => 0,
    descent: { errorFeedback: false, steps: 150 },
  },
  {
    ...plain,
    name: "ef21 with momentum",
    aggregator: withMomentum(withEf21(topKCompressor({ density: 0.25 })), halved),
    bytes: quarterGathered,
    permutation: true,
    descent: { errorFeedback: false },
  },
  {
    ...plain,
    name: "majority-vote with momentum",
    aggregator: withMomentum(majorityVoteAggregator(), halved),
    bytes: majorityVoteBytes,
    scale: false,
    odd: false,
    randomised: true,
    ofZero: [-1, 1],
    descent: { errorFeedback: false, margin: 0.6 },
  },
  {
    ...plain,
    name: "top-k with error feedback and momentum",
    aggregator: withMomentum(withErrorFeedback(topKCompressor({ density: 0.25 })), halved),
    bytes: quarterGathered,
    permutation: true,
    descent: { errorFeedback: false },
  },
  {
    ...plain,
    name: "identity with momentum",
    aggregator: withMomentum(identityCompressor(), halved),
    bytes: (bucket, worldSize) => reduced(lengthOf(bucket), worldSize),
    permutation: true,
    descent: { errorFeedback: false },
  },
  {
    ...plain,
    name: "chain of top-k and eight-bit",
    aggregator: chainCompressors(topKCompressor({ density: 0.25 }), eightBitCompressor({ blockSize: 16 })),
    bytes: (bucket, worldSize) => {
      const k = kept(0.25, lengthOf(bucket));
      return (4 * k + eightBit(k, 16)) * (worldSize - 1);
    },
    contraction: (bucket) => share(0.25)(bucket) - (1.001 * 16) / 254 ** 2,
    dense: chainCompressors(topKCompressor({ density: 1 }), identityCompressor()),
  },
  {
    ...plain,
    name: "chain of top-k and eight-bit with error feedback",
    aggregator: withErrorFeedback(
      chainCompressors(topKCompressor({ density: 0.25 }), eightBitCompressor({ blockSize: 16 })),
    ),
    bytes: (bucket, worldSize) => {
      const k = kept(0.25, lengthOf(bucket));
      return (4 * k + eightBit(k, 16)) * (worldSize - 1);
    },
  },
  {
    ...plain,
    name: "chain of random-k and stochastic eight-bit",
    aggregator: chainCompressors(randomKCompressor({ density: 0.5 }), eightBitCompressor({ rounding: "stochastic" })),
    bytes: (bucket, worldSize) => eightBit(kept(0.5, lengthOf(bucket)), 256) * (worldSize - 1),
    odd: false,
    randomised: true,
    descent: { steps: 150 },
  },
  {
    ...plain,
    name: "chain of two that are added",
    aggregator: chainCompressors(randomKCompressor({ density: 0.5 }), identityCompressor()),
    bytes: (bucket, worldSize) => reduced(kept(0.5, lengthOf(bucket)), worldSize),
    dense: chainCompressors(randomKCompressor({ density: 1 }), identityCompressor()),
    randomised: true,
    descent: { steps: 150 },
  },
  {
    ...plain,
    name: "partition",
    aggregator: partitionAggregator([
      { when: isMatrix, aggregator: withErrorFeedback(topKCompressor({ density: 0.25 })) },
      { when: hasAtLeast(3), aggregator: eightBitCompressor({ blockSize: 16 }) },
    ]),
    bytes: (bucket, worldSize) => {
      const matrices = among(bucket, (_, shape) => shape.length >= 2);
      const long = among(bucket, (_, shape) => shape.length === 1 && shape[0]! >= 3);
      return (
        (8 * kept(0.25, matrices) + eightBit(long, 16)) * (worldSize - 1) +
        reduced(lengthOf(bucket) - matrices - long, worldSize)
      );
    },
    contraction: () => 0,
    descent: { errorFeedback: false },
    dense: partitionAggregator([{ when: isMatrix, aggregator: topKCompressor({ density: 1 }) }]),
  },
  {
    ...plain,
    name: "partition with error feedback",
    aggregator: withErrorFeedback(
      partitionAggregator([{ when: isMatrix, aggregator: powerSgdAggregator({ rank: 1 }) }]),
    ),
    bytes: powerOfRankOne,
    conservation: 4e-6,
    descent: { steps: 150 },
  },
  {
    ...plain,
    name: "per-path",
    aggregator: layered,
    bytes: (bucket, worldSize) => {
      const [kernel, dense, w] = ["kernel", "dense", "w"].map((path) => among(bucket, (own) => own === path)) as [
        number,
        number,
        number,
      ];
      const rest = reduced(lengthOf(bucket) - kernel - dense - w, worldSize);
      return 8 * (kept(0.1, kernel) + Math.min(5, dense) + kept(0.5, w)) * (worldSize - 1) + rest;
    },
    contraction: () => 1 / 20,
  },
];
