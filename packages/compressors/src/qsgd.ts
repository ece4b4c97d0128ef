import {
  absolute,
  add,
  ArgumentError,
  cast,
  concat,
  divide,
  equal,
  flatten,
  floor,
  foldIn,
  less,
  minimum,
  multiply,
  negate,
  reshape,
  subtract,
  type Tensor,
  type TensorSpec,
  uniform,
  where,
} from "@skein/tensor-core";
import { packPlanes, planesFor, unpackPlanes } from "./bit-planes.ts";
import { blockParts, blockShape, fromBlocks, splitBlocks, toBlocks } from "./blocks.ts";
import { lengthOf } from "./bucket.ts";
import { type Compressor, defineCompressor } from "./compressor.ts";
import { ownKey } from "./own-key.ts";
import { relativeNorm } from "./relative-norm.ts";
import { cutWords, joinWords } from "./word-message.ts";

export interface QsgdOptions {
  /** Number of quantization levels above zero (s), 1 to 127. Default: 127. */
  readonly levels?: number;
  /** Maximum number of entries that share a norm (d). Default: 128. */
  readonly bucketSize?: number;
}

/**
 * Codes (level + s), and one norm per block. With 8-bit codes: u8 `[rows, size]` and f32 `[rows, 1]`. With fewer bits:
 * u32 `[bits · ⌈rows·size/32⌉ + rows]`, first bit 0 of all codes, then bit 1 of all codes, and so on, then the bits of
 * the f32 norms.
 */
export type QsgdPayload = readonly Tensor[];

/**
 * QSGD: rounds each entry at random to one of `s` levels of its block's norm: `‖v‖₂ · sign(v_j) · ξ_j/s`. ξ_j is
 * ⌊s|v_j|/‖v‖₂⌋ or one more, with probabilities that make the expectation exact. Each rank draws different random
 * numbers, so the exchange needs a key.
 *
 * Variance per block of d entries: at most `min(d/s², √d/s) ‖v‖²`. A block of zeros stays zero. A level is never above
 * s, even if rounding makes |v_j| exceed the norm.
 *
 * @throws ArgumentError unless levels is an integer from 1 to 127 and bucketSize is a positive integer.
 * Cost: `⌈log₂(2s + 1)⌉` bits per entry (8 for 127 levels, 4 for 7, 2 for 1) plus 4 bytes per block, by all-gather.
 * @example
 * ```ts
 * const compressor = qsgdCompressor({ levels: 4 });
 * const send = (w: Tensor, key: Tensor) =>
 *   exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor, key })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([0, -8, 0, 0]), randomKey(1));
 * console.log(sent.toNumbers()); // [0, -8, 0, 0]
 * ```
 * Source: Alistarh et al. 2017, arXiv 1610.02132.
 */
export const qsgdCompressor = ({ levels = 127, bucketSize = 128 }: QsgdOptions = {}): Compressor<[], QsgdPayload> => {
  if (!(Number.isInteger(levels) && levels >= 1 && levels <= 127))
    throw new ArgumentError(
      `qsgdCompressor: ${levels} levels and their signs do not fit in a byte; use an integer from 1 to 127`,
    );
  blockShape(0, bucketSize);
  const bits = planesFor(2 * levels);
  const specsOf = (rows: number, size: number): TensorSpec[] => [
    ...Array.from({ length: bits }, (): TensorSpec => ({ dtype: "u32", shape: [Math.ceil((rows * size) / 32)] })),
    { dtype: "f32", shape: [rows, 1] },
  ];
  const name = `QSGD ${levels}`;
  return defineCompressor<[], QsgdPayload>({
    name,
    aggregation: "gather",
    biased: false,
    scope: "bucket",
    init: () => [],
    encode: (gradient, state, context) => {
      const key = ownKey(name, context);
      const flat = flatten(gradient);
      const parts = toBlocks(flat, bucketSize).map((blocks, i) => {
        const { greatest, relative, norm } = relativeNorm(blocks);
        const steps = multiply(absolute(relative), divide(levels, where(equal(norm, 0), 1, norm)));
        const level = minimum(floor(add(steps, uniform(foldIn(key, i), blocks.shape))), levels);
        const code = add(where(less(relative, 0), negate(level), level), levels);
        return { code: cast(code, bits === 8 ? "u8" : "u32"), norm: multiply(greatest, norm) };
      });
      const norms = concat(parts.map(({ norm }) => norm));
      if (bits === 8) return { payload: [concat(parts.map(({ code }) => code)), norms], state };
      const areWhole = blockParts(flat.shape[0]!, bucketSize).every(({ begin }) => begin % 32 === 0);
      const codes = areWhole ? parts.map(({ code }) => code) : [concat(parts.map(({ code }) => code))];
      const planes = codes.map((code) => packPlanes(flatten(code), 2 * levels));
      const joined = Array.from({ length: bits }, (_, k) => concat(planes.map((part) => part[k]!)));
      return { payload: [joinWords([...joined, norms])], state };
    },
    decode: (payload, gradient) => {
      const count = lengthOf(gradient);
      const [rows, size] = blockShape(count, bucketSize);
      const leaves = bits === 8 ? payload : cutWords(payload[0]!, specsOf(rows, size));
      const code = bits === 8 ? leaves[0]! : reshape(unpackPlanes(leaves.slice(0, -1), rows * size), [rows, size]);
      const norms = splitBlocks(leaves.at(-1)!, count, bucketSize);
      const parts = splitBlocks(code, count, bucketSize).map((part, i) =>
        multiply(subtract(cast(part, "f32"), levels), multiply(norms[i]!, 1 / levels)),
      );
      return reshape(fromBlocks(parts, count), gradient.shape);
    },
    payloadBytes: (gradient) => {
      const [rows, size] = blockShape(lengthOf(gradient), bucketSize);
      return (bits === 8 ? rows * size : 4 * bits * Math.ceil((rows * size) / 32)) + 4 * rows;
    },
  });
};
