import { ArgumentError, ShapeError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber, checkOptions } from "../options.ts";
import { formatSpec } from "../shape.ts";
import {
  add,
  arange,
  bitcast,
  bitwiseAnd,
  cast,
  constant,
  cos,
  multiply,
  shiftRight,
  sin,
  subtract,
} from "./elementwise.ts";
import { concat, expandDims, reshape, slice, stack } from "./movement.ts";

/**
 * Frequency scaling for sequences longer than the training sequences. Types are named as in Hugging Face
 * configurations.
 */
export type RotaryScaling =
  | { readonly type: "linear"; readonly factor: number }
  | {
      readonly type: "llama3";
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      /** Maximum length, in positions, of the sequences with which the model was originally trained. */
      readonly originalPositions: number;
    };

export interface RotaryOptions {
  /**
   * Position of each row, i32, of a shape that broadcasts to x.shape[:-1]. Default: `offset`, `offset` + 1, … along the
   * second-to-last dimension.
   */
  readonly positions?: Tensor;
  /** Base of the rotation frequencies. Default: 10 000. */
  readonly base?: number;
  /** Position of the first row, if `positions` is absent. Default: 0. */
  readonly offset?: number;
  /** Scaling of the frequencies. Default: none. */
  readonly scaling?: RotaryScaling;
  /**
   * Layout of the rotated pairs. "halves": i and i + D/2 (GPT-NeoX, and Llama as stored by Hugging Face).
   * "interleaved": 2i and 2i + 1 (RoFormer). Default: "halves".
   */
  readonly pairs?: "halves" | "interleaved";
}

const scaleFrequency = (frequency: number, scaling: RotaryScaling | undefined): number => {
  if (scaling === undefined) return frequency;
  const { factor } = scaling;
  if (scaling.type === "linear") return frequency / factor;
  const { lowFrequencyFactor: low, highFrequencyFactor: high, originalPositions } = scaling;
  const turns = (originalPositions * frequency) / (2 * Math.PI);
  const share = Math.max(0, Math.min(1, (turns - low) / (high - low)));
  return (1 - share) * (frequency / factor) + share * frequency;
};

const checkScaling = (scaling: RotaryScaling | undefined): void => {
  if (scaling === undefined) return;
  const { type } = scaling;
  if (type !== "linear" && type !== "llama3")
    throw new ArgumentError(`rotary: unknown scaling type ${JSON.stringify(type)}; use "linear" or "llama3"`);
  const check = (name: string, value: number, from: number): void =>
    checkNumber("rotary", `scaling.${name}`, value, { from, usual: 8 });
  check("factor", scaling.factor, 1);
  if (scaling.type !== "llama3") return;
  check("lowFrequencyFactor", scaling.lowFrequencyFactor, 0);
  check("originalPositions", scaling.originalPositions, 1);
  check("highFrequencyFactor", scaling.highFrequencyFactor, 0);
  if (!(scaling.highFrequencyFactor > scaling.lowFrequencyFactor))
    throw new ArgumentError(
      `rotary: scaling.highFrequencyFactor is ${scaling.highFrequencyFactor}, but must be above lowFrequencyFactor, ${scaling.lowFrequencyFactor}; swap them`,
    );
};

const word = 2 ** 32;
const fraction = (x: number): number => x - Math.floor(x);

/** Computes the upper 32 bits of the 64-bit products of u32 numbers, by multiplying 16-bit halves. */
const multiplyHigh = (a: Tensor, b: Tensor): Tensor => {
  const [aLow, aHigh] = [bitwiseAnd(a, 0xffff), shiftRight(a, 16)];
  const [bLow, bHigh] = [bitwiseAnd(b, 0xffff), shiftRight(b, 16)];
  const middle = add(multiply(aHigh, bLow), shiftRight(multiply(aLow, bLow), 16));
  const other = add(multiply(aLow, bHigh), bitwiseAnd(middle, 0xffff));
  return add(add(multiply(aHigh, bHigh), shiftRight(middle, 16)), shiftRight(other, 16));
};

/**
 * Computes the rotation angles, in −π … π, f32 [..., T, pairs]. Direct f32 multiplication would have a relative error
 * of 2⁻²⁴, which is an absolute error of 0.06 at position 10⁶. Therefore, frequencies are stored as 64-bit fixed-point
 * fractions of a turn per position (two u32 words). Position times frequency, modulo one turn, is then an integer
 * product, exact to 2⁻³² turns at all positions, including negative positions.
 */
const anglesAt = (positions: Tensor, frequencies: readonly number[]): Tensor => {
  const turns = frequencies.map((frequency) => fraction(frequency / (2 * Math.PI)) * word);
  const [high, low] = [turns.map(Math.floor), turns.map((value) => Math.floor(fraction(value) * word))].map((words) =>
    constant(words, "u32", [words.length]),
  );
  const unsignedPositions = bitcast(expandDims(positions, { dims: -1 }), "u32");
  // A negative position, read as unsigned, is too large by 2³².
  const excess = multiply(shiftRight(unsignedPositions, 31), low!);
  const angle = subtract(add(multiply(unsignedPositions, high!), multiplyHigh(unsignedPositions, low!)), excess);
  return multiply(cast(bitcast(angle, "i32"), "f32"), (2 * Math.PI) / word);
};

/**
 * Rotary position embedding: rotates pair i of the row at position t by the angle `t · base^(−2i/D)`; `scaling` may
 * change the frequency.
 *
 * The gradient rotates in the opposite direction. Angles are exact to 2⁻³² turns at all positions (all i32 values if
 * `positions` is given); sines and cosines are exact to f32.
 *
 * @param x f32 [..., T, D], D even.
 * Cost: without `positions`, `scaling` and `pairs`, one kernel that reads and writes x once. Otherwise, cosines and
 * sines of all positions are computed once as a table [..., T, D/2], and x is read and written about twice.
 * @throws ShapeError if the shapes of x and positions do not match; ArgumentError if the scaling is invalid.
 * @example
 * ```ts
 * const apply = (x: Tensor) => rotary(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 0, 1, 0], [1, 2, 1, 2]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['1.00', '0.00', '1.00', '0.00']
 * ```
 * Source: Su et al. 2021, arXiv 2104.09864.
 */
export const rotary = (x: Tensor, options: RotaryOptions = {}): Tensor => {
  const {
    base = 10_000,
    offset = 0,
    pairs = "halves",
    scaling,
    positions: givenPositions,
  } = checkOptions("rotary(x)", options, {
    positions: true,
    base: true,
    offset: true,
    scaling: true,
    pairs: true,
  });
  requireOperands("rotary", givenPositions === undefined ? [x] : [x, givenPositions]);
  checkNumber("rotary", "base", base, { from: 1, usual: 10_000 });
  checkNumber("rotary", "offset", offset, { from: -Infinity, usual: 0 });
  checkScaling(scaling);
  if (pairs !== "halves" && pairs !== "interleaved")
    throw new ArgumentError(`rotary: unknown pairs ${JSON.stringify(pairs)}; use "halves" or "interleaved"`);
  if (givenPositions === undefined && scaling === undefined && pairs === "halves")
    return emitOne("rotary", [x], { base, offset, sign: 1 });
  const lead = x.shape.slice(0, -1);
  const width = x.shape.at(-1) ?? 0;
  if (x.dtype !== "f32" || x.rank < 2 || width % 2 !== 0)
    throw new ShapeError(
      "rotary",
      `got ${formatSpec(x)}, expected f32 [..., positions, D] with D even; cast or reshape it`,
    );
  const positions = givenPositions ?? add(arange(lead.at(-1)!), offset);
  const stretches = positions.shape.every((size, dim) => [1, lead[dim + lead.length - positions.rank]].includes(size));
  if (
    positions.dtype !== "i32" ||
    positions.rank > lead.length ||
    !stretches ||
    (givenPositions !== undefined && offset !== 0)
  )
    throw new ShapeError(
      "rotary",
      givenPositions !== undefined && offset !== 0
        ? `both positions and an offset of ${offset} were given; add the offset to the positions`
        : `positions are ${formatSpec(positions)}, which do not broadcast to the rows of ${formatSpec(x)}; pass i32 with sizes of 1 or of ${JSON.stringify(lead)}, aligned at the last dimension`,
    );
  const half = width / 2;
  const angles = anglesAt(
    positions,
    Array.from({ length: half }, (_, i) => scaleFrequency(base ** (-i / half), scaling)),
  );
  const [cosine, sine] = [cos(angles), sin(angles)];
  const turn = (a: Tensor, b: Tensor): [Tensor, Tensor] => [
    subtract(multiply(a, cosine), multiply(b, sine)),
    add(multiply(b, cosine), multiply(a, sine)),
  ];
  const last = x.rank - 1;
  const from = (begin: number, end: number, step = 1): Tensor =>
    slice(x, [...lead.map(() => 0), begin], [...lead, end], [...lead.map(() => 1), step]);
  if (pairs === "halves") return concat(turn(from(0, half), from(half, width)), { dim: last });
  return reshape(stack(turn(from(0, width, 2), from(1, width, 2)), { dim: -1 }), x.shape);
};
