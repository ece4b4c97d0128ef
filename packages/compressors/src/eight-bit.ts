import { concat, dequantize, flatten, foldIn, quantize, reshape, type Tensor } from "@skein/tensor-core";
import { blockShape, fromBlocks, splitBlocks, toBlocks } from "./blocks.ts";
import { lengthOf } from "./bucket.ts";
import { type Compressor, defineCompressor } from "./compressor.ts";
import { ownKey } from "./own-key.ts";

export interface EightBitOptions {
  /** Maximum number of entries that share a scale. Default: 256. */
  readonly blockSize?: number;
  /** Rounding of codes. `stochastic` is unbiased and needs a key. Default: nearest. */
  readonly rounding?: "nearest" | "stochastic";
}

export interface EightBitPayload {
  /** Codes, u8 `[rows, size]`. */
  readonly codes: Tensor;
  /** Scales, f32 `[rows, 1]`. */
  readonly scales: Tensor;
}

/**
 * 8-bit quantization: sends one byte per entry, and one scale per block. An entry is decoded as
 * `(code − 128) · max|u| / 127`.
 *
 * Error per entry: at most half a quantization step, `max|u|/254`, so the contraction is at least
 * `1 − blockSize/(4·127²)`. With stochastic rounding: less than one step, and zero in expectation. Both bounds are
 * exact within 2⁻¹⁵ of a step, see `quantize`. Rounding to nearest is biased: wrap the compressor in
 * `withErrorFeedback`.
 *
 * @throws ArgumentError unless blockSize is a positive integer.
 * Cost: n bytes plus 4 per block, by all-gather; `agoqAggregator` sends fewer bytes for 3 or more ranks.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(eightBitCompressor());
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([127, -64, 32, 1]));
 * console.log(sent.toNumbers()); // [127, -64, 32, 1]
 * ```
 * Source: Dettmers et al. 2022, arXiv 2110.02861 (blocks).
 */
export const eightBitCompressor = ({
  blockSize = 256,
  rounding = "nearest",
}: EightBitOptions = {}): Compressor<[], EightBitPayload> => {
  blockShape(0, blockSize);
  const name = rounding === "nearest" ? "8-bit" : "8-bit, stochastic";
  return defineCompressor<[], EightBitPayload>({
    name,
    aggregation: "gather",
    biased: rounding === "nearest",
    scope: "bucket",
    // Each entry may lose half a step of max|u|/127.
    ...(rounding === "nearest" && {
      contraction: (gradient) => {
        const least = 1 - blockShape(lengthOf(gradient), blockSize)[1] / 254 ** 2;
        return least > 0 ? least : undefined;
      },
    }),
    init: () => [],
    encode: (gradient, state, context) => {
      const key = rounding === "nearest" ? undefined : ownKey(name, context);
      const parts = toBlocks(flatten(gradient), blockSize).map((blocks, i) =>
        quantize(blocks, key && { key: foldIn(key, i) }),
      );
      return {
        payload: { codes: concat(parts.map(({ codes }) => codes)), scales: concat(parts.map(({ scale }) => scale)) },
        state,
      };
    },
    decode: ({ codes, scales }, gradient) => {
      const count = lengthOf(gradient);
      const scaleParts = splitBlocks(scales, count, blockSize);
      const parts = splitBlocks(codes, count, blockSize).map((part, i) => dequantize(part, scaleParts[i]!));
      return reshape(fromBlocks(parts, count), gradient.shape);
    },
    payloadBytes: (gradient) => {
      const [rows, size] = blockShape(lengthOf(gradient), blockSize);
      return rows * (size + 4);
    },
  });
};
