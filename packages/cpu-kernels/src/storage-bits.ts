import { type DType, NdArray } from "@skein/tensor-core";

/** Returns the bits of `value` in the storage format of `dtype`, as an unsigned number. */
export const storageBits = (value: number, dtype: DType): number =>
  NdArray.scalar(value, dtype)
    .bytes()
    .reduceRight((bits, byte) => bits * 256 + byte, 0);
