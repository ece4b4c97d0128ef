import { type Bucket, lengthOf } from "../../src/index.ts";
import { agoqAggregator } from "../../src/agoq.ts";
import { eightBitCompressor } from "../../src/eight-bit.ts";
import { majorityVoteAggregator } from "../../src/majority-vote.ts";
import { oneBitCompressor } from "../../src/one-bit.ts";
import { qsgdCompressor } from "../../src/qsgd.ts";
import { scaledSignCompressor, scaledSignPerTensorAggregator } from "../../src/scaled-sign.ts";
import { ternGradAggregator } from "../../src/tern-grad.ts";
import type { Row } from "./row.ts";

/** Returns the number of bytes that one rank sends, if each rank sends `bytes` bytes to all other ranks. */
const gathered = (bytes: number, worldSize: number): number => bytes * (worldSize - 1);

/** Returns the number of u32 words for `count` bits. */
const words = (count: number): number => Math.ceil(count / 32);

/**
 * Returns the number and size of the blocks of `count` entries: as few blocks as possible, of equal and minimum size,
 * with at most `most` entries each.
 */
const blocks = (count: number, most: number): readonly [rows: number, size: number] => {
  const rows = Math.ceil(count / most);
  return [rows, Math.ceil(count / Math.max(1, rows))];
};

const plain = { conservation: 2e-6, permutation: false, scale: true, odd: false, randomised: false } as const;

// For quantizers with three levels, whose variance is several times the squared gradient.
const noisy = { learningRate: 0.05, margin: 0.08 } as const;

const qsgdBytes =
  (bits: number, bucketSize: number) =>
  (bucket: Bucket, worldSize: number): number => {
    const [rows, size] = blocks(lengthOf(bucket), bucketSize);
    return gathered((bits === 8 ? rows * size : bits * 4 * words(rows * size)) + 4 * rows, worldSize);
  };

const eightBitBytes =
  (blockSize: number) =>
  (bucket: Bucket, worldSize: number): number => {
    const [rows, size] = blocks(lengthOf(bucket), blockSize);
    return gathered(rows * size + 4 * rows, worldSize);
  };

/**
 * Returns the bytes of TernGrad: all-to-all of two bits per entry, all-gather of sums from −P to P, and all-reduce of
 * one f32 per tensor.
 */
const ternGradBytes = (bucket: Bucket, worldSize: number): number => {
  const shard = Math.ceil(words(lengthOf(bucket)) / worldSize);
  return (
    (worldSize - 1) * (2 + Math.ceil(Math.log2(2 * worldSize + 1))) * 4 * shard +
    (2 * 4 * bucket.tensors.length * (worldSize - 1)) / worldSize
  );
};

/** Returns the bytes of an all-to-all and an all-gather, each with one bit per entry of a shard plus one word. */
export const majorityVoteBytes = (bucket: Bucket, worldSize: number): number =>
  2 * (worldSize - 1) * 4 * (Math.ceil(words(lengthOf(bucket)) / worldSize) + 1);

// A step of 8 bits is max|u|/127, an error at most half of that: (1/254)² of max|u|² ≤ ‖u‖², for each entry of a block.
const eightBitContraction =
  (blockSize: number) =>
  (bucket: Bucket): number =>
    1 - (1.001 * Math.min(blockSize, lengthOf(bucket))) / 254 ** 2;

export const quantizerRows: readonly Row[] = [
  {
    ...plain,
    name: "majority-vote",
    aggregator: majorityVoteAggregator(),
    bytes: majorityVoteBytes,
    scale: false,
    randomised: true,
    ofZero: [-1, 1],
    // Votes lead to the median of the ranks' optima, not to the optimum of the mean.
    descent: { errorFeedback: false, margin: 0.6 },
  },
  {
    ...plain,
    name: "scaled-sign",
    aggregator: scaledSignCompressor(),
    bytes: (bucket, worldSize) => gathered(4 * words(lengthOf(bucket)) + 4, worldSize),
    contraction: (bucket) => 1 / Math.max(1, lengthOf(bucket)),
    permutation: true,
  },
  {
    ...plain,
    name: "scaled-sign per tensor",
    aggregator: scaledSignPerTensorAggregator(),
    bytes: (bucket, worldSize) => gathered(4 * words(lengthOf(bucket)) + 4 * bucket.tensors.length, worldSize),
    contraction: (bucket) => 1 / Math.max(1, lengthOf(bucket)),
  },
  {
    ...plain,
    name: "one-bit",
    aggregator: oneBitCompressor({ blockSize: 8 }),
    bytes: (bucket, worldSize) => {
      const [rows, size] = blocks(lengthOf(bucket), 8);
      return gathered(4 * words(rows * size) + 8 * rows, worldSize);
    },
    contraction: () => 1 / 8,
  },
  {
    ...plain,
    name: "qsgd",
    aggregator: qsgdCompressor(),
    bytes: qsgdBytes(8, 128),
    odd: true,
    randomised: true,
  },
  {
    ...plain,
    name: "qsgd of 4 bits",
    aggregator: qsgdCompressor({ levels: 7, bucketSize: 8 }),
    bytes: qsgdBytes(4, 8),
    odd: true,
    randomised: true,
  },
  {
    ...plain,
    name: "qsgd of 2 bits",
    aggregator: qsgdCompressor({ levels: 1, bucketSize: 4 }),
    bytes: qsgdBytes(2, 4),
    odd: true,
    randomised: true,
    descent: noisy,
  },
  {
    ...plain,
    name: "tern-grad",
    aggregator: ternGradAggregator(),
    bytes: ternGradBytes,
    odd: true,
    randomised: true,
    descent: noisy,
  },
  {
    ...plain,
    name: "tern-grad without clipping",
    aggregator: ternGradAggregator({ clip: Infinity }),
    bytes: ternGradBytes,
    odd: true,
    randomised: true,
    descent: noisy,
  },
  {
    ...plain,
    name: "eight-bit",
    aggregator: eightBitCompressor({ blockSize: 16 }),
    bytes: eightBitBytes(16),
    contraction: eightBitContraction(16),
    dense: eightBitCompressor(),
    denseTolerance: 1 / 253,
    odd: true,
  },
  {
    ...plain,
    name: "eight-bit, stochastic",
    aggregator: eightBitCompressor({ rounding: "stochastic" }),
    bytes: eightBitBytes(256),
    randomised: true,
  },
  {
    ...plain,
    name: "agoq",
    aggregator: agoqAggregator({ blockSize: 16 }),
    bytes: (bucket, worldSize) => {
      const [rows, size] = blocks(Math.ceil(lengthOf(bucket) / worldSize), 16);
      return 2 * (worldSize - 1) * rows * (size + 4);
    },
    // With several ranks, the owner of a shard has the rounding error of the whole sum.
    contraction: (bucket, worldSize) => (worldSize === 1 ? eightBitContraction(16)(bucket) : undefined),
    dense: agoqAggregator(),
    denseTolerance: 2 / 253,
    odd: true,
  },
];
