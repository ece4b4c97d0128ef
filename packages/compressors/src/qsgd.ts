import {
  absolute,
  add,
  ArgumentError,
  cast,
  divide,
  equal,
  flatten,
  floor,
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
import { blockShape, fromBlocks, toBlocks } from "./blocks.ts";
import { lengthOf } from "./bucket.ts";
import { type Compressor, defineCompressor } from "./compressor.ts";
import { ownKey } from "./own-key.ts";
import { relativeNorm } from "./relative-norm.ts";
import { cutWords, joinWords } from "./word-message.ts";

export interface QsgdOptions {
  /** s: levels above zero, 1 to 127. Default: 127. */
  readonly levels?: number;
  /** d: entries that share a norm, at most. Default: 128. */
  readonly bucketSize?: number;
}

/**
 * Level + s of each entry, and a norm per block. Where a code takes 8 bits: u8 `[rows, size]` and f32 `[rows, 1]`. Else u32
 * `[bits · ⌈rows·size/32⌉ + rows]`: bit 0 of all codes, bit 1 of all, and so on; then the bits of the f32 norms.
 */
export type QsgdPayload = readonly Tensor[];

/**
 * Round each entry at random to one of `s` levels of its block's norm: `‖v‖₂ · sign(v_j) · ξ_j/s` with ξ_j = ⌊s|v_j|/‖v‖₂⌋ or one more, so
 * that the expectation is exact. Each rank draws for itself; the exchange needs a key.
 *
 * Variance per block of d entries: at most `min(d/s², √d/s) ‖v‖²`. A block of zeros stays. A level is never above s, also where rounding
 * makes |v_j| exceed the norm.
 *
 * @throws ArgumentError unless levels is an integer from 1 to 127 and bucketSize one from 1.
 * Cost: `⌈log₂(2s + 1)⌉` bits per entry (8 for 127 levels, 4 for 7, 2 for 1) and 4 bytes per block, by all-gather.
 * Source: Alistarh et al. 2017, arXiv 1610.02132.
 */
export const qsgdCompressor = ({ levels = 127, bucketSize = 128 }: QsgdOptions = {}): Compressor<[], QsgdPayload> => {
  if (!(Number.isInteger(levels) && levels >= 1 && levels <= 127))
    throw new ArgumentError(`qsgdCompressor: ${levels} levels do not fit a byte with their signs; use an integer from 1 to 127`);
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
    init: () => [],
    encode: (gradient, state, context) => {
      const { greatest, relative, norm } = relativeNorm(toBlocks(flatten(gradient), bucketSize));
      const steps = multiply(absolute(relative), divide(levels, where(equal(norm, 0), 1, norm)));
      const level = minimum(floor(add(steps, uniform(ownKey(name, context), relative.shape))), levels);
      const code = add(where(less(relative, 0), negate(level), level), levels);
      const norms = multiply(greatest, norm);
      const payload = bits === 8 ? [cast(code, "u8"), norms] : [joinWords([...packPlanes(cast(flatten(code), "u32"), 2 * levels), norms])];
      return { payload, state };
    },
    decode: (payload, gradient) => {
      const count = lengthOf(gradient);
      const [rows, size] = blockShape(count, bucketSize);
      const parts = bits === 8 ? payload : cutWords(payload[0]!, specsOf(rows, size));
      const norms = parts.at(-1)!;
      const code = bits === 8 ? cast(parts[0]!, "f32") : reshape(unpackPlanes(parts.slice(0, -1), rows * size), [rows, size]);
      return reshape(fromBlocks(multiply(subtract(code, levels), multiply(norms, 1 / levels)), count), gradient.shape);
    },
    payloadBytes: (gradient) => {
      const [rows, size] = blockShape(lengthOf(gradient), bucketSize);
      return (bits === 8 ? rows * size : 4 * bits * Math.ceil((rows * size) / 32)) + 4 * rows;
    },
  });
};
