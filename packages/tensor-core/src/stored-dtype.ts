import { bytesPerElement, type DType } from "./dtype.ts";
import { elementCount, type Shape } from "./shape.ts";

/**
 * Element type of a file that tensors do not support. Such data can be copied between files, but not read as an array.
 */
export type ForeignDType =
  | "f64"
  | "c64"
  | "i64"
  | "u64"
  | "i16"
  | "u16"
  | "i8"
  | "f8_e4m3"
  | "f8_e4m3fnuz"
  | "f8_e5m2"
  | "f8_e5m2fnuz"
  | "f8_e8m0"
  | "f6_e2m3"
  | "f6_e3m2"
  | "f4";

/** Element type of a tensor in a file. */
export type StoredDType = DType | ForeignDType;

/** Dtype and shape of a tensor in a file. */
export interface StoredSpec {
  readonly dtype: StoredDType;
  readonly shape: Shape;
}

/** A tensor as stored in a file, of any element type. */
export interface StoredTensor extends StoredSpec {
  readonly bytes: Uint8Array;
}

/** Number of bytes per element; less than 1 if several elements share a byte. */
export const storedBytesPerElement: Readonly<Record<StoredDType, number>> = {
  ...bytesPerElement,
  f64: 8,
  c64: 8,
  i64: 8,
  u64: 8,
  i16: 2,
  u16: 2,
  i8: 1,
  f8_e4m3: 1,
  f8_e4m3fnuz: 1,
  f8_e5m2: 1,
  f8_e5m2fnuz: 1,
  f8_e8m0: 1,
  f6_e2m3: 0.75,
  f6_e3m2: 0.75,
  f4: 0.5,
};

/**
 * Returns the number of bytes of a tensor in a file. The result is fractional if elements do not fill the last byte;
 * the format does not allow such tensors.
 */
export const storedByteLength = ({ dtype, shape }: StoredSpec): number =>
  elementCount(shape) * storedBytesPerElement[dtype];
