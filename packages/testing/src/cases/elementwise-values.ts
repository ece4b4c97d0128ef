import { type DType, NdArray } from "@skein/tensor-core";
import type { Tolerance } from "../closeness.ts";
import { normalArray } from "../seeded.ts";

export const exact: Tolerance = { absolute: 0, relative: 0 };
/** Tolerance of one rounding to f32. */
export const rounded: Tolerance = { absolute: 1e-45, relative: 6e-8 };
/** Tolerance of about two units in the last place. */
export const elementary: Tolerance = { absolute: 1e-37, relative: 3e-7 };

const special = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  1e-40,
  -1e-40,
  1e-30,
  1e-8,
  -1e-8,
  0.3465735,
  -0.3465736,
  20.25,
  -20.25,
  87,
  -87,
  Infinity,
  -Infinity,
  NaN,
];
/**
 * Returns a vector of all special values, `extra`, and normal values times `scale`. The length is not a multiple of any
 * vector or tile.
 */
export const adversarial = (scale: number, extra: readonly number[] = []): NdArray =>
  NdArray.from([
    ...special,
    ...extra,
    ...normalArray([1100], 3)
      .toNumbers()
      .map((value) => Math.fround(value * scale)),
  ]);

/**
 * Edge values of each dtype: the ends of its range, zero, NaN and infinities. Every value is paired with every other
 * value.
 */
export const edges: { readonly [D in DType]: readonly number[] } = {
  f32: [0, -0, 1, -1, 1.5, -2.25, 3e4, -1e-30, Infinity, -Infinity, NaN],
  f16: [0, -0, 1, -1.5, 65504, 2 ** -24, 2 ** -14, -Infinity, Infinity, NaN],
  bf16: [0, -0, 1, -1.5, 3e38, 1e-40, -Infinity, Infinity, NaN],
  i32: [0, 1, -1, 2, -7, 2 ** 31 - 1, -(2 ** 31), 46341],
  u32: [0, 1, 2, 7, 2 ** 32 - 1, 2 ** 31, 65537],
  u8: [0, 1, 7, 128, 255],
  bool: [0, 1],
};

export const outer = (dtype: DType): readonly [NdArray, NdArray] => {
  const values = edges[dtype];
  const pairs = values.flatMap((a) => values.map((b) => [a, b] as const));
  return [
    NdArray.from(
      pairs.map(([a]) => a),
      undefined,
      dtype,
    ),
    NdArray.from(
      pairs.map(([, b]) => b),
      undefined,
      dtype,
    ),
  ];
};
