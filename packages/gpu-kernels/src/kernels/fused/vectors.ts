import { bytesPerElement, type DType } from "@skein/tensor-core";
import { registerType } from "../../storage.ts";
import { wgsl } from "../../wgsl.ts";

// Vectors of four values. An element of a binding holds elements 4i … 4i+3 of an operand, in as many words as the dtype
// needs.

/** Returns the WGSL type of four values in registers. */
export const vectorType = (dtype: DType): string => `vec4<${registerType[dtype]}>`;

/** Returns the WGSL type of a binding whose elements hold four adjacent values each. */
export const vectorBinding = (dtype: DType): string =>
  bytesPerElement[dtype] === 4
    ? `array<${vectorType(dtype)}>`
    : bytesPerElement[dtype] === 2
      ? "array<vec2<u32>>"
      : "array<u32>";

/** Returns WGSL that unpacks four values from one element of a binding. */
export const unpackVector = (stored: string, dtype: DType): string =>
  bytesPerElement[dtype] === 4
    ? stored
    : dtype === "bool"
      ? `(unpack_u8(${stored}) != vec4<u32>())`
      : `unpack_${dtype}(${stored})`;

/**
 * Returns WGSL that packs four values into one element of a binding.
 *
 * @param encoded WGSL of the bits of 16-bit floats, if they have already been computed.
 */
export const packVector = (value: string, dtype: DType, encoded: string = `encode_${dtype}(${value})`): string => {
  switch (dtype) {
    case "f16":
    case "bf16":
      return `pack_halves(${encoded})`;
    case "u8":
      return `pack_bytes(${value})`;
    case "bool":
      return `pack_bytes(select(vec4<u32>(), vec4<u32>(1u), ${value}))`;
    default:
      return value;
  }
};

/** WGSL of the functions that `packVector` and `unpackVector` call, by function name. */
export const vectorFunctions: { readonly [name: string]: string } = {
  unpack_f16:
    "fn unpack_f16(w: vec2<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)); }",
  unpack_bf16:
    "fn unpack_bf16(w: vec2<u32>) -> vec4<f32> { return bitcast<vec4<f32>>(vec4<u32>(w.x << 16u, w.x & 0xffff0000u, w.y << 16u, w.y & 0xffff0000u)); }",
  unpack_u8:
    "fn unpack_u8(w: u32) -> vec4<u32> { return (vec4<u32>(w) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u); }",
  pack_halves: "fn pack_halves(h: vec4<u32>) -> vec2<u32> { return h.xz | (h.yw << vec2<u32>(16u)); }",
  pack_bytes: wgsl`
    fn pack_bytes(v: vec4<u32>) -> u32 {
      let b = (v & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
      return b.x | b.y | b.z | b.w;
    }
  `,
};
