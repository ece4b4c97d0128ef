import { NdArray } from "@skein/tensor-core";
import { fromF16Bits, toBf16Bits, toF16Bits } from "@skein/tensor-core/backend";

/** Dtypes in which weights are stored. */
export type FloatDType = "f32" | "f16" | "bf16";

/** Converts an array to f32, exactly. An f32 array is returned without a copy. */
export const toF32 = (array: NdArray): NdArray => {
  if (array.dtype === "f32") return array;
  const out = new Float32Array(array.data.length);
  if (array.dtype === "bf16") {
    // Converted bit by bit, so that NaN payloads are preserved.
    const bits = new Uint32Array(out.buffer);
    array.data.forEach((half, i) => (bits[i] = half << 16));
  } else array.data.forEach((half, i) => (out[i] = fromF16Bits(half)));
  return new NdArray("f32", array.shape, out);
};

/** Rounds an f32 array to another dtype, ties to even. If `dtype` is f32, the array is returned without a copy. */
export const fromF32 = (array: NdArray, dtype: FloatDType): NdArray => {
  if (array.dtype === dtype) return array;
  const encode = dtype === "bf16" ? toBf16Bits : toF16Bits;
  const out = new Uint16Array(array.data.length);
  array.data.forEach((value, i) => (out[i] = encode(value)));
  return new NdArray(dtype, array.shape, out);
};
