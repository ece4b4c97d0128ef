import {
  absolute,
  broadcastTo,
  concat,
  elementCount,
  flatten,
  greaterEqual,
  multiply,
  negate,
  packBits,
  reshape,
  split,
  sum,
  type Tensor,
  type TensorSpec,
  unpackBits,
  where,
} from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";
import { lengthOf } from "./bucket.ts";
import { type Compressor, defineCompressor, payloadsSent } from "./compressor.ts";
import { cutWords, joinWords } from "./word-message.ts";

export interface SignPayload {
  /**
   * Packed message, u32 `[⌈n/32⌉ + parts]`. First one bit per entry, set if the entry is not negative. Then the bits of
   * each part's f32 mean magnitude.
   */
  readonly words: Tensor;
}

/**
 * Returns a lower bound on the contraction: 1/n for n entries, because ‖u‖₁² ≥ ‖u‖₂². The bound also holds with several
 * parts.
 */
const minPerSign = (gradient: TensorSpec): number => 1 / Math.max(1, lengthOf(gradient));

/**
 * Returns a sign compressor with one scale per part of the flat gradient. `partsOf` returns the lengths of the parts.
 */
const signCompressor = (
  name: string,
  partsOf: (gradient: TensorSpec) => readonly number[],
): Compressor<[], SignPayload> =>
  defineCompressor<[], SignPayload>({
    name,
    aggregation: "gather",
    biased: true,
    scope: "bucket",
    contraction: minPerSign,
    init: () => [],
    encode: (gradient, state) => {
      const flat = flatten(gradient);
      const scales = split(absolute(flat), partsOf(gradient)).map((part) =>
        multiply(sum(part, { keepDims: true }), 1 / Math.max(1, lengthOf(part))),
      );
      // A NaN counts as negative; its scale is NaN too.
      return { payload: { words: joinWords([packBits(greaterEqual(flat, 0)), ...scales]) }, state };
    },
    decode: ({ words }, gradient) => {
      const count = lengthOf(gradient);
      const parts = partsOf(gradient);
      const [signs, ...scales] = cutWords(words, [
        { dtype: "u32", shape: [Math.ceil(count / 32)] },
        ...parts.map((): TensorSpec => ({ dtype: "f32", shape: [1] })),
      ]) as [Tensor, ...Tensor[]];
      const scale = concat(parts.map((length, i) => broadcastTo(scales[i]!, [length])));
      return reshape(where(unpackBits(signs, count), scale, negate(scale)), gradient.shape);
    },
    payloadBytes: (gradient) => 4 * (Math.ceil(lengthOf(gradient) / 32) + partsOf(gradient).length),
  });

/**
 * Sends signs and the mean magnitude of the gradient (EF-signSGD): `C(u) = ‖u‖₁/n · sign(u)`, with sign(0) = +1.
 *
 * Error: `‖u − C(u)‖² = (1 − ‖u‖₁²/(n‖u‖₂²))‖u‖²`, at most `(1 − 1/n)‖u‖²`, and `(1 − 2/π)‖u‖²` for a normal gradient.
 * Biased: wrap it in `withErrorFeedback`.
 *
 * Cost: `4⌈n/32⌉ + 4` bytes per rank, by all-gather. With 64 or more ranks, a dense all-reduce sends fewer bytes.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(scaledSignCompressor());
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [2.5, -2.5, 2.5, 2.5]
 * ```
 * Source: Karimireddy et al. 2019, arXiv 1901.09847 (EF-signSGD).
 */
export const scaledSignCompressor = (): Compressor<[], SignPayload> =>
  signCompressor("scaled sign", (gradient) => [lengthOf(gradient)]);

/**
 * Variant of `scaledSignCompressor` with one mean magnitude per tensor of a bucket, so that tensors with small
 * gradients keep their scale next to tensors with large gradients.
 *
 * Cost: `4⌈n/32⌉` bytes plus 4 per tensor, by all-gather.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(scaledSignPerTensorAggregator());
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [2.5, -2.5, 2.5, 2.5]
 * ```
 */
export const scaledSignPerTensorAggregator = (): Aggregator<[]> => {
  const name = "scaled sign per tensor";
  return {
    name,
    biased: true,
    scope: "tensor",
    contraction: minPerSign,
    init: () => [],
    aggregate: (gradient, state, bucket, context) =>
      signCompressor(name, () => bucket.tensors.map(({ shape }) => elementCount(shape))).aggregate(
        gradient,
        state,
        bucket,
        context,
      ),
    bytesSent: (bucket, worldSize) =>
      payloadsSent(
        { aggregation: "gather" },
        4 * Math.ceil(lengthOf(bucket) / 32) + 4 * bucket.tensors.length,
        worldSize,
      ),
  };
};
