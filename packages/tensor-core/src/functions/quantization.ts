import { ArgumentError, ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec, type Shape } from "../shape.ts";
import {
  add,
  bitwiseAnd,
  bitwiseOr,
  cast,
  divide,
  isFinite,
  maximum,
  minimum,
  multiply,
  negate,
  shiftLeft,
  shiftRight,
  subtract,
  where,
} from "./elementwise.ts";
import { concat, pad, slice } from "./movement.ts";
import { uniform } from "./random.ts";
import { reduceMax, reduceMin } from "./reduce.ts";

export interface QuantizeOptions {
  /** Number of bits per code. Default: 8. */
  readonly bits?: 8 | 4 | 2;
  /** Random key, u32[2], for stochastic rounding, which is unbiased. Absent: round to nearest. */
  readonly key?: Tensor;
}

export interface DequantizeOptions {
  /** Number of bits per code, as passed to `quantize`. Default: 8. */
  readonly bits?: 8 | 4 | 2;
  /**
   * Number of codes per row: size of the last dimension of the result. Default: as many codes as the bytes can contain.
   */
  readonly count?: number;
}

/** Minimum scale: the smallest normal f32, so that the reciprocal of a scale is finite. */
const minScale = 2 ** -126;

const codesPerByte = (op: string, bits: number): number => {
  if (bits !== 8 && bits !== 4 && bits !== 2)
    throw new ArgumentError(`${op}: ${bits} bits per code are not supported; use 8, 4 or 2`);
  return 8 / bits;
};

const lastDim = (x: Tensor, from: number, to: number): Tensor => {
  const outer = x.shape.slice(0, -1);
  return slice(x, [...outer.map(() => 0), from], [...outer, to]);
};

/**
 * Packs u8 codes: each row is divided into `parts` equal parts, and part k is stored in bits `bits·k` to
 * `bits·(k + 1) − 1` of each byte. Adjacent codes are stored in adjacent bytes.
 */
const packCodes = (codes: Tensor, bits: number, parts: number): Tensor => {
  if (parts === 1) return codes;
  const count = codes.shape.at(-1)!;
  const size = Math.ceil(count / parts);
  const missing = codes.shape.map((_, dim): readonly [number, number] => [
    0,
    dim === codes.rank - 1 ? parts * size - count : 0,
  ]);
  const padded = pad(codes, missing);
  const planes = Array.from({ length: parts }, (_, k) =>
    shiftLeft(cast(lastDim(padded, k * size, (k + 1) * size), "u32"), bits * k),
  );
  return cast(
    planes.reduce((byte, plane) => bitwiseOr(byte, plane)),
    "u8",
  );
};

const unpackCodes = (codes: Tensor, bits: number, parts: number, count: number): Tensor => {
  if (parts === 1) return codes;
  const bytes = cast(codes, "u32");
  const planes = Array.from({ length: parts }, (_, k) =>
    cast(bitwiseAnd(shiftRight(bytes, bits * k), 2 ** bits - 1), "u8"),
  );
  return lastDim(concat(planes, { dim: codes.rank - 1 }), 0, count);
};

/**
 * Quantizes each row (last dimension) to integer multiples of one scale, symmetric around 0:
 * `x ≈ (code − 2^(bits−1)) · scale` with `scale = max|x| / (2^(bits−1) − 1)`, at least 2⁻¹²⁶. A row of zeros stays
 * zero; a row with a NaN or an infinity becomes NaN.
 *
 * Maximum error per element: scale/2 with rounding to nearest (halves round up); less than scale with a key, with an
 * expected error of 0. Errors may exceed both bounds by up to 2⁻¹⁵ · scale, because of the f32 rounding error at the
 * largest code. With 4 or 2 bits, 2 or 4 codes share one byte.
 *
 * @param x f32 [..., n].
 * @returns Codes u8 [..., ⌈n·bits/8⌉] and scale f32 [..., 1]. No gradient flows through the results. Bytes: x is read
 * two to three times, codes are written once.
 * @example
 * ```ts
 * const apply = (x: Tensor) => quantize(x).codes;
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, -2, 4]));
 * console.log(result.toNumbers()); // [160, 65, 255]
 * ```
 * Source: Alistarh et al. 2017, arXiv 1610.02132, with the largest absolute value instead of the norm.
 */
export const quantize = (
  x: Tensor,
  options: QuantizeOptions = {},
): { readonly codes: Tensor; readonly scale: Tensor } => {
  const { bits = 8, key } = checkOptions("quantize(x)", options, { bits: true, key: true });
  requireOperands("quantize", [x]);
  const parts = codesPerByte("quantize", bits);
  if (x.dtype !== "f32" || x.rank === 0)
    throw new ShapeError("quantize", `got ${formatSpec(x)}, expected f32 [..., n]; cast or reshape it`);
  const most = 2 ** (bits - 1) - 1;
  const along = { dims: -1, keepDims: true };
  const greatest = maximum(reduceMax(x, along), negate(reduceMin(x, along)));
  const scale = where(isFinite(greatest), maximum(divide(greatest, most), minScale), NaN);
  // One multiply-add per element; the cast truncates the fraction.
  const middle = most + 1;
  const steps = multiply(x, divide(1, scale));
  const codes =
    key === undefined
      ? add(steps, middle + 0.5)
      : // If the random number is close to 1, rounding may make the sum exceed the largest code.
        minimum(add(add(steps, middle), uniform(key, x.shape)), 2 * most + 1);
  return { codes: packCodes(cast(codes, "u8"), bits, parts), scale };
};

/**
 * Decodes the result of `quantize`: `(code − 2^(bits−1)) · scale`.
 *
 * @param codes u8 [..., ⌈count·bits/8⌉]. @param scale f32 [..., 1].
 * @returns f32 [..., count].
 * @example
 * ```ts
 * const restore = (x: Tensor) => {
 *   const { codes, scale } = quantize(x);
 *   return dequantize(codes, scale);
 * };
 * const result = await evaluate(restore, referenceBackend())(NdArray.from([127, -64]));
 * console.log(result.toNumbers()); // [127, -64]
 * ```
 */
export const dequantize = (codes: Tensor, scale: Tensor, options: DequantizeOptions = {}): Tensor => {
  const { bits = 8, count } = checkOptions("dequantize(codes, scale)", options, { bits: true, count: true });
  requireOperands("dequantize", [codes, scale]);
  const parts = codesPerByte("dequantize", bits);
  if (codes.dtype !== "u8" || codes.rank === 0)
    throw new ShapeError(
      "dequantize",
      `codes are ${formatSpec(codes)}, expected u8 [..., n]; pass the codes that quantize returned`,
    );
  const bytes = codes.shape.at(-1)!;
  const size = count ?? bytes * parts;
  if (Math.ceil(size / parts) !== bytes) {
    const fitting: Shape = [...codes.shape.slice(0, -1), Math.ceil(size / parts)];
    throw new ShapeError(
      "dequantize",
      `codes are ${formatSpec(codes)}, but ${size} codes of ${bits} bits take u8 [${fitting.join(", ")}]; pass the count and bits that were quantized`,
    );
  }
  return multiply(subtract(cast(unpackCodes(codes, bits, parts, size), "f32"), 2 ** (bits - 1)), scale);
};
