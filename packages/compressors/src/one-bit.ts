import {
  cast,
  concat,
  divide,
  flatten,
  less,
  maximum,
  packBits,
  reshape,
  slice,
  subtract,
  sum,
  type Tensor,
  type TensorSpec,
  unpackBits,
  where,
} from "@skein/tensor-core";
import { blockParts, blockShape, fromBlocks, splitBlocks, toBlocks } from "./blocks.ts";
import { lengthOf } from "./bucket.ts";
import { type Compressor, defineCompressor } from "./compressor.ts";
import { cutWords, joinWords } from "./word-message.ts";

export interface OneBitOptions {
  /** Maximum number of entries that share two reconstruction values. Default: 512, which gives 1.125 bits per entry. */
  readonly blockSize?: number;
}

export interface OneBitPayload {
  /**
   * Packed message, u32 `[⌈n/32⌉ + 2 rows]`. First one bit per entry, set if the entry is negative. Then the f32 bits
   * of each block's mean of nonnegative entries, 0 if there are none. Then the f32 bits of each block's mean of
   * negative entries.
   */
  readonly words: Tensor;
}

/**
 * 1-bit SGD: sends one bit per entry, and two values per block: the mean of its entries ≥ 0, and the mean of its
 * entries < 0. These means minimize the squared error for the given bits.
 *
 * The contraction is at least 1/blockSize, because the energy sent per block is at least `‖u‖₁²/blockSize`. Biased:
 * wrap it in `withErrorFeedback`, and make the first steps dense, as the authors do. The authors use one block per
 * column of a weight matrix.
 *
 * @throws ArgumentError unless blockSize is a positive integer.
 * Cost: n/8 bytes plus 8 per block, by all-gather.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(oneBitCompressor());
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [2, -4, 2, 2]
 * ```
 * Source: Seide et al. 2014, 1-Bit Stochastic Gradient Descent (Interspeech).
 */
export const oneBitCompressor = ({ blockSize = 512 }: OneBitOptions = {}): Compressor<[], OneBitPayload> => {
  blockShape(0, blockSize);
  return defineCompressor<[], OneBitPayload>({
    name: "1-bit",
    aggregation: "gather",
    biased: true,
    scope: "bucket",
    contraction: () => 1 / blockSize,
    init: () => [],
    encode: (gradient, state) => {
      const flat = flatten(gradient);
      const count = flat.shape[0]!;
      const along = { dims: -1, keepDims: true };
      const layout = blockParts(count, blockSize);
      const parts = toBlocks(flat, blockSize).map((blocks, i) => {
        const negative = less(blocks, 0);
        const numNegative = sum(cast(negative, "f32"), along);
        const { rows, size, entries } = layout[i]!;
        const numOthers = subtract(rows === 1 ? entries : size, numNegative);
        // A NaN is not negative, so it makes the mean of nonnegative entries NaN.
        const above = divide(sum(where(negative, 0, blocks), along), maximum(numOthers, 1));
        const below = divide(sum(where(negative, blocks, 0), along), maximum(numNegative, 1));
        return { signs: packBits(slice(flatten(negative), [0], [entries])), above, below };
      });
      // If a part ends inside a word, the signs of all parts are packed together.
      const areWhole = layout.every(({ begin }) => begin % 32 === 0);
      const signs = areWhole ? concat(parts.map((part) => part.signs)) : packBits(less(flat, 0));
      return {
        payload: { words: joinWords([signs, ...parts.map(({ above }) => above), ...parts.map(({ below }) => below)]) },
        state,
      };
    },
    decode: ({ words }, gradient) => {
      const count = lengthOf(gradient);
      const [rows] = blockShape(count, blockSize);
      const means: TensorSpec = { dtype: "f32", shape: [rows, 1] };
      const [packed, above, below] = cutWords(words, [
        { dtype: "u32", shape: [Math.ceil(count / 32)] },
        means,
        means,
      ]) as [Tensor, Tensor, Tensor];
      const signs = unpackBits(packed, count);
      const [aboveParts, belowParts] = [above, below].map((mean) => splitBlocks(mean, count, blockSize)) as [
        Tensor[],
        Tensor[],
      ];
      const parts = blockParts(count, blockSize).map((part, i) => {
        const own = reshape(slice(signs, [part.begin], [part.begin + part.entries]), [
          part.rows,
          part.rows === 1 ? part.entries : part.size,
        ]);
        return where(own, belowParts[i]!, aboveParts[i]!);
      });
      return reshape(fromBlocks(parts, count), gradient.shape);
    },
    payloadBytes: (gradient) => {
      const [rows] = blockShape(lengthOf(gradient), blockSize);
      return 4 * Math.ceil(lengthOf(gradient) / 32) + 8 * rows;
    },
  });
};
