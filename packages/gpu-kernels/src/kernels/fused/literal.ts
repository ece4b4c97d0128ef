import type { DType } from "@skein/tensor-core";

const bitsOf = (value: number): number => new Uint32Array(Float32Array.of(value).buffer)[0]!;

/**
 * Returns WGSL of a vector with `value` in all four components. Values without a decimal form (infinities, NaN, -0) and
 * values that may be flushed (subnormals) cannot be WGSL constants, because WGSL rejects or folds them. Such values are
 * computed from their bits and `sizes.never`; see `functionsFor`.
 */
export const literal = (value: number, dtype: DType): string => {
  if (dtype === "bool") return `vec4<bool>(${value !== 0})`;
  if (dtype === "i32")
    return value === -(2 ** 31) ? "vec4<i32>(i32(-2147483647) - 1)" : `vec4<i32>(${Math.trunc(value)})`;
  if (dtype === "u32" || dtype === "u8") return `vec4<u32>(${Math.trunc(value)}u)`;
  const rounded = Math.fround(value);
  const plain = Object.is(rounded, 0) || (Number.isFinite(rounded) && Math.abs(rounded) >= 2 ** -126);
  if (!plain) return `vec4<f32>(bitcast<f32>(0x${bitsOf(rounded).toString(16)}u | sizes.never))`;
  const text = String(rounded);
  return `vec4<f32>(${/[.e]/.test(text) ? text : `${text}.0`})`;
};
