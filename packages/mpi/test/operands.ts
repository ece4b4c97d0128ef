import { bytesPerElement, type DType } from "@skein/tensor-core";
import { type CollectiveKind, hostArrayType, toBf16Bits, toF16Bits } from "@skein/tensor-core/backend";

/**
 * Returns the number of elements of one rank's input and output for `n` of the request table in `CollectiveRequest`.
 */
export const regionElements = (
  kind: CollectiveKind,
  worldSize: number,
  n: number,
): { input: number; output: number } => {
  if (kind === "barrier") return { input: 0, output: 0 };
  return {
    input: kind === "reduce-scatter" || kind === "all-to-all" ? worldSize * n : n,
    output: kind === "all-gather" || kind === "all-to-all" ? worldSize * n : n,
  };
};

/**
 * Returns a value whose sums depend on the order of addition. The values include NaN, infinities, both zeros and
 * subnormals.
 */
const roughValue = (rank: number, i: number): number => {
  const special = [Number.NaN, Infinity, -Infinity, -0, 0, 2 ** -24, 2 ** -130, 65_520];
  if (i % 19 === 18) return special[(Math.floor(i / 19) + rank) % special.length]!;
  return Math.sin(i * 3 + rank * 17) * 10 ** ((i + rank * 3) % 5);
};

/** Returns memory shared between threads, like the operands of all requests. */
export const sharedBytes = (byteLength: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(byteLength));

/** Returns `count` elements of one rank. `exact`: small integers, whose sums do not depend on the order. */
export const operand = (rank: number, count: number, dtype: DType, exact = false): Uint8Array => {
  const bytes = sharedBytes(count * bytesPerElement[dtype]);
  const stored = new hostArrayType[dtype](bytes.buffer);
  for (let i = 0; i < count; i++) {
    const whole = (i * 7 + rank * 5) % 11;
    const value = exact ? whole - 5 : roughValue(rank, i);
    if (dtype === "f32") stored[i] = value;
    else if (dtype === "f16") stored[i] = toF16Bits(Math.fround(value));
    else if (dtype === "bf16") stored[i] = toBf16Bits(Math.fround(value));
    // Sums of i32 wrap around.
    else stored[i] = dtype === "bool" ? whole & 1 : dtype === "i32" ? (whole - 5) * 400_000_000 : whole;
  }
  return bytes;
};

/**
 * Returns a copy of the bytes in which all NaNs of a float type have the same bits, because the bits of a NaN are not
 * specified.
 */
export const canonical = (bytes: Uint8Array, dtype: DType): Uint8Array => {
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  const width = bytesPerElement[dtype];
  for (let i = 0; i < copy.length; i += width) {
    if (dtype === "f32" && Number.isNaN(view.getFloat32(i, true))) view.setUint32(i, 0x7fc00000, true);
    const limit = dtype === "f16" ? 0x7c00 : dtype === "bf16" ? 0x7f80 : 0xffff;
    if (width === 2 && (view.getUint16(i, true) & 0x7fff) > limit) view.setUint16(i, 0x7fff, true);
  }
  return copy;
};
