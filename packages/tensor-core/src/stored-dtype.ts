import { bytesPerElement, type DType } from "./dtype.ts";
import { elementCount, type Shape } from "./shape.ts";

/** Element types that files have, and no tensor of ours: what has one can be carried from file to file, not read. */
export type ForeignDType = "f64" | "i64" | "u64" | "i16" | "u16" | "i8";

/** Element types that files have. */
export type StoredDType = DType | ForeignDType;

/** What a file says of a tensor. */
export interface StoredSpec {
  readonly dtype: StoredDType;
  readonly shape: Shape;
}

export const storedBytesPerElement: Readonly<Record<StoredDType, number>> = {
  ...bytesPerElement,
  f64: 8,
  i64: 8,
  u64: 8,
  i16: 2,
  u16: 2,
  i8: 1,
};

/** Bytes that a tensor takes in a file. */
export const storedByteLength = ({ dtype, shape }: StoredSpec): number =>
  elementCount(shape) * storedBytesPerElement[dtype];
