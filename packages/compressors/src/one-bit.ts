import {
  cast,
  divide,
  equal,
  flatten,
  iota,
  less,
  logicalNot,
  maximum,
  packBits,
  reshape,
  subtract,
  sum,
  type Tensor,
  type TensorSpec,
  unpackBits,
  where,
} from "@skein/tensor-core";
import { blockShape, fromBlocks, toBlocks } from "./blocks.ts";
import { lengthOf } from "./bucket.ts";
import { type Compressor, defineCompressor } from "./compressor.ts";
import { cutWords, joinWords } from "./word-message.ts";

export interface OneBitOptions {
  /** Entries that share two reconstruction values, at most. Default: 512, which makes 1.125 bits of an entry. */
  readonly blockSize?: number;
}

export interface OneBitPayload {
  /**
   * u32 `[⌈rows·size/32⌉ + 2 rows]`: a set bit for each entry that is not negative; then, as bits of f32, the mean of those entries for each
   * block, 0 where there are none; then that of the negative ones.
   */
  readonly words: Tensor;
}

/** How many entries of each block are no filling, f32 `[rows, 1]`; only the last block has any. */
const entriesOf = (rows: number, size: number, count: number): Tensor =>
  where(equal(iota([rows, 1], 0), rows - 1), count - (rows - 1) * size, size);

/**
 * Send one bit per entry, and for each block the mean of its entries ≥ 0 and the mean of those < 0: what the two bits stand for is then as
 * near as it can be in least squares.
 *
 * Contraction 1/blockSize at worst: the squares that it keeps are at least `‖u‖₁²/blockSize` per block. Biased: wrap it in `withErrorFeedback`,
 * and let the first steps go dense, as the authors do. They take a block per column of a weight matrix.
 *
 * @throws ArgumentError unless blockSize is an integer from 1.
 * Cost: n/8 bytes and 8 per block, by all-gather.
 * Source: Seide et al. 2014, 1-Bit Stochastic Gradient Descent (Interspeech).
 */
export const oneBitCompressor = ({ blockSize = 512 }: OneBitOptions = {}): Compressor<[], OneBitPayload> => {
  blockShape(0, blockSize);
  return defineCompressor<[], OneBitPayload>({
    name: "1-bit",
    aggregation: "gather",
    biased: true,
    contraction: () => 1 / blockSize,
    init: () => [],
    encode: (gradient, state) => {
      const flat = flatten(gradient);
      const blocks = toBlocks(flat, blockSize);
      const [rows, size] = blocks.shape as [number, number];
      const along = { dims: -1, keepDims: true };
      const negative = less(blocks, 0);
      const numNegative = sum(cast(negative, "f32"), along);
      const numOthers = subtract(entriesOf(rows, size, flat.shape[0]!), numNegative);
      // A NaN is not negative, so it makes the other mean NaN.
      const above = divide(sum(where(negative, 0, blocks), along), maximum(numOthers, 1));
      const below = divide(sum(where(negative, blocks, 0), along), maximum(numNegative, 1));
      return { payload: { words: joinWords([packBits(flatten(logicalNot(negative))), above, below]) }, state };
    },
    decode: ({ words }, gradient) => {
      const count = lengthOf(gradient);
      const [rows, size] = blockShape(count, blockSize);
      const means: TensorSpec = { dtype: "f32", shape: [rows, 1] };
      const [signs, above, below] = cutWords(words, [{ dtype: "u32", shape: [Math.ceil((rows * size) / 32)] }, means, means]) as [
        Tensor,
        Tensor,
        Tensor,
      ];
      const bits = reshape(unpackBits(signs, rows * size), [rows, size]);
      return reshape(fromBlocks(where(bits, above, below), count), gradient.shape);
    },
    payloadBytes: (gradient) => {
      const [rows, size] = blockShape(lengthOf(gradient), blockSize);
      return 4 * Math.ceil((rows * size) / 32) + 8 * rows;
    },
  });
};
