import { bytesPerElement, type DType } from "@skein/tensor-core";

// Storage format of each dtype in a storage buffer, and the WGSL to read and write it. Values narrower than a word are
// packed as on the host, little-endian, several per u32. Stores write complete words.

/** WGSL type of a value in registers, by dtype. */
export const registerType: { readonly [D in DType]: "f32" | "i32" | "u32" | "bool" } = {
  f32: "f32",
  f16: "f32",
  bf16: "f32",
  i32: "i32",
  u32: "u32",
  u8: "u32",
  bool: "bool",
};

export const elementsPerWord = (dtype: DType): number => 4 / bytesPerElement[dtype];

/** Returns the WGSL type of a binding that contains elements, or packed words. */
export const bindingType = (dtype: DType): string =>
  `array<${bytesPerElement[dtype] === 4 ? registerType[dtype] : "u32"}>`;

/** Returns WGSL of the bits of element `index`, in the low bits of a u32. `name` is a binding with packed words. */
const packedBits = (name: string, dtype: DType, index: string): string => {
  const width = 8 * bytesPerElement[dtype];
  const [shift, mask, step] = width === 16 ? ["1u", "0xffffu", "1u"] : ["2u", "0xffu", "3u"];
  return `((${name}[(${index}) >> ${shift}] >> (((${index}) & ${step}) * ${width}u)) & ${mask})`;
};

const decoded: { readonly [D in DType]: (bits: string) => string } = {
  f32: (bits) => `bitcast<f32>(${bits})`,
  f16: (bits) => `unpack2x16float(${bits}).x`,
  bf16: (bits) => `bitcast<f32>((${bits}) << 16u)`,
  i32: (bits) => `bitcast<i32>(${bits})`,
  u32: (bits) => bits,
  u8: (bits) => bits,
  bool: (bits) => `((${bits}) != 0u)`,
};

/**
 * Returns WGSL of `fn load_<name>(i: u32) -> <registerType>`, which returns element i of the binding `name`. The
 * binding must be declared with `bindingType(dtype)`.
 *
 * @param fn Name of the function. Default: `load_<name>`.
 */
export const loadFunction = (name: string, dtype: DType, fn: string = `load_${name}`): string =>
  `fn ${fn}(i: u32) -> ${registerType[dtype]} { return ${
    bytesPerElement[dtype] === 4 ? `${name}[i]` : decoded[dtype](packedBits(name, dtype, "i"))
  }; }`;

/**
 * Returns WGSL of `fn bits_<name>(i: u32) -> u32`, which returns the raw bits of element i, for kernels that only move
 * data. The binding holds u32 words.
 */
export const bitsFunction = (name: string, dtype: DType): string =>
  `fn bits_${name}(i: u32) -> u32 { return ${bytesPerElement[dtype] === 4 ? `${name}[i]` : packedBits(name, dtype, "i")}; }`;
