import { bytesPerElement, type DType, NdArray } from "@skein/tensor-core";

/** Returns a 32-bit word that repeats `value` in the storage format of `dtype`. */
export const fillWord = (value: number, dtype: DType): number => {
  const count = 4 / bytesPerElement[dtype];
  const bytes = NdArray.from(new Array<number>(count).fill(value), [count], dtype).bytes();
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
};
