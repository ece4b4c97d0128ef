import type { DType, NdArray, TensorSpec } from "@skein/tensor-core";
import { formatSpec } from "@skein/tensor-core/backend";

export interface Tolerance {
  readonly absolute: number;
  readonly relative: number;
}

/** Maximum relative error of rounding to nearest, by dtype. */
export const unitRoundoff: { readonly [D in "f32" | "f16" | "bf16"]: number } = {
  f32: 2 ** -24,
  f16: 2 ** -11,
  bf16: 2 ** -8,
};

/**
 * Maximum difference between two 16-bit numbers that were rounded separately from the same number. Relative: one unit
 * roundoff per number. Absolute: the distance between adjacent numbers near zero.
 */
export const storageTolerance: { readonly [D in "f16" | "bf16"]: Tolerance } = {
  f16: { absolute: 2 ** -24, relative: 2 * unitRoundoff.f16 },
  bf16: { absolute: 2 ** -133, relative: 2 * unitRoundoff.bf16 },
};

/** Default tolerance per storage dtype: the rounding error of one operation. Integers and bools must be equal. */
export const defaultTolerance: { readonly [D in DType]: Tolerance } = {
  f32: { absolute: 1e-5, relative: 1e-5 },
  ...storageTolerance,
  i32: { absolute: 0, relative: 0 },
  u32: { absolute: 0, relative: 0 },
  u8: { absolute: 0, relative: 0 },
  bool: { absolute: 0, relative: 0 },
};

/** Describes the first element outside the tolerance. Returns undefined if all elements are within the tolerance. */
export const firstDifference = (
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: Tolerance,
): string | undefined => {
  if (actual.length !== expected.length) return `${actual.length} elements instead of ${expected.length}`;
  for (let i = 0; i < actual.length; i++) {
    const a = actual[i]!;
    const e = expected[i]!;
    if (
      Number.isNaN(e)
        ? Number.isNaN(a)
        : a === e || Math.abs(a - e) <= tolerance.absolute + tolerance.relative * Math.abs(e)
    )
      continue;
    return `element ${i} is ${a}, the reference says ${e} (allowed: ${tolerance.absolute} + ${tolerance.relative}·|reference|)`;
  }
  return undefined;
};

/** Throws unless `actual` has the spec of the reference and all elements are within the tolerance. */
export const assertClose = (
  actual: NdArray,
  expected: { readonly spec: TensorSpec; readonly data: ArrayLike<number> },
  label: string,
  tolerance?: Tolerance,
): void => {
  if (formatSpec(actual) !== formatSpec(expected.spec))
    throw new Error(`${label}: got ${formatSpec(actual)}, the reference is ${formatSpec(expected.spec)}`);
  const difference = firstDifference(actual.toNumbers(), expected.data, tolerance ?? defaultTolerance[actual.dtype]);
  if (difference !== undefined) throw new Error(`${label}: ${difference}`);
};
