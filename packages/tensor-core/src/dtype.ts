/**
 * Element type of a tensor. `f16` and `bf16` are storage types: cast to `f32` before arithmetic. `bool` is one byte, 0
 * or 1.
 */
export type DType = "f32" | "f16" | "bf16" | "i32" | "u32" | "u8" | "bool";

/** 16-bit floating-point types: storage types for operands and results of matrix products. */
export type HalfDType = "f16" | "bf16";

/** All element types. */
export const dtypes: readonly DType[] = ["f32", "f16", "bf16", "i32", "u32", "u8", "bool"];

/** Dtypes that arithmetic operators accept. f16 and bf16 must be cast to f32 first. */
export const arithmetic: readonly DType[] = ["f32", "i32", "u32"];

/** Dtypes that real-valued functions such as `exp` accept. */
export const floating: readonly DType[] = ["f32"];

/** Dtypes whose elements are ordered, so that `less` and `maximum` accept them. */
export const ordered: readonly DType[] = ["f32", "i32", "u32", "u8", "bool"];

/** Number of bytes per element of each dtype. */
export const bytesPerElement: Readonly<Record<DType, number>> = {
  f32: 4,
  f16: 2,
  bf16: 2,
  i32: 4,
  u32: 4,
  u8: 1,
  bool: 1,
};

/** Typed array type of each dtype on the host; f16 and bf16 are stored as bit patterns. */
export interface HostStorage {
  readonly f32: Float32Array;
  readonly f16: Uint16Array;
  readonly bf16: Uint16Array;
  readonly i32: Int32Array;
  readonly u32: Uint32Array;
  readonly u8: Uint8Array;
  readonly bool: Uint8Array;
}

/** Typed array with a tensor's elements on the host; f16 and bf16 are stored as bit patterns. */
export type HostData = HostStorage[DType];

/** Typed array constructor of each dtype on the host; f16 and bf16 are stored as bit patterns. */
export const hostArrayType: {
  readonly [D in DType]: new (
    buffer: ArrayBufferLike,
    byteOffset?: number,
    length?: number,
  ) => HostStorage[D];
} = {
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  u8: Uint8Array,
  bool: Uint8Array,
};

/**
 * Whether a dtype is floating-point, so that gradients flow through it.
 *
 * @example
 * ```ts
 * console.log(isFloat("bf16"), isFloat("i32")); // true false
 * ```
 */
export const isFloat = (dtype: DType): boolean => dtype === "f32" || dtype === "f16" || dtype === "bf16";

/** Whether a dtype is a 16-bit float. */
export const isHalf = (dtype: DType): dtype is HalfDType => dtype === "f16" || dtype === "bf16";

/** Smallest and largest value of each integer dtype. */
export const integerRange: { readonly [dtype in DType]?: readonly [least: number, greatest: number] } = {
  i32: [-(2 ** 31), 2 ** 31 - 1],
  u32: [0, 2 ** 32 - 1],
  u8: [0, 255],
};

const scratch: DataView = new DataView(new ArrayBuffer(4));

const bitsOf = (value: number): number => {
  scratch.setFloat32(0, value);
  return scratch.getUint32(0);
};

const floatOf = (bits: number): number => {
  scratch.setUint32(0, bits);
  return scratch.getFloat32(0);
};

/**
 * Rounds to the nearest bfloat16 (ties to even) and returns its 16 bits. NaN stays NaN.
 *
 * @example
 * ```ts
 * console.log(toBf16Bits(1).toString(16)); // 3f80
 * ```
 */
export const toBf16Bits = (value: number): number => {
  const bits = bitsOf(value);
  if (Number.isNaN(value)) return 0x7fc0 | ((bits >>> 16) & 0x8000);
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
};

/**
 * Decodes the bits of a bf16 to a number, exactly.
 *
 * @example
 * ```ts
 * console.log(fromBf16Bits(0x3f80)); // 1
 * ```
 */
export const fromBf16Bits = (bits: number): number => floatOf((bits << 16) >>> 0);

/**
 * Rounds to the nearest IEEE half (ties to even, subnormals kept) and returns its 16 bits.
 *
 * @example
 * ```ts
 * console.log(toF16Bits(1).toString(16), fromF16Bits(0x3c00)); // 3c00 1
 * ```
 */
export const toF16Bits = (value: number): number => {
  const bits = bitsOf(value);
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00; // 65520 and above round to infinity
  if (magnitude < 0x38800000) {
    // Below 2^-14, the result is a subnormal half: a multiple of 2^-24. Scaling by a power of two is exact, so only one
    // rounding happens.
    const units = Math.abs(floatOf(magnitude)) * 2 ** 24;
    const floor = Math.floor(units);
    const rest = units - floor;
    const up = rest > 0.5 || (rest === 0.5 && (floor & 1) === 1);
    return sign | (floor + (up ? 1 : 0));
  }
  const rebased = magnitude - 0x38000000;
  return sign | (((rebased + 0xfff + ((rebased >>> 13) & 1)) >>> 13) & 0x7fff);
};

/**
 * Decodes the bits of an IEEE half to a number, exactly.
 *
 * @example
 * ```ts
 * console.log(fromF16Bits(0x3c00)); // 1
 * ```
 */
export const fromF16Bits = (bits: number): number => {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
};

/**
 * Converts a real number to the nearest value that `dtype` can represent. Exception: `f32` keeps f64 precision, for the
 * f64 reference.
 */
export const roundToStorage = (value: number, dtype: DType): number => {
  switch (dtype) {
    case "f32":
      return value;
    case "f16":
      return fromF16Bits(toF16Bits(value));
    case "bf16":
      return fromBf16Bits(toBf16Bits(value));
    case "i32":
      return value | 0;
    case "u32":
      return value >>> 0;
    case "u8":
      return value & 0xff;
    case "bool":
      return value === 0 ? 0 : 1;
  }
};
