import { elementCount, NdArray } from "@skein/tensor-core";

/** Copies the entries `begin` … `end` − 1 of an array along `dim`. */
export const rowSlice = (array: NdArray, dim: number, begin: number, end: number): NdArray => {
  const { shape, dtype } = array;
  const [outer, size, inner] = [elementCount(shape.slice(0, dim)), shape[dim]!, elementCount(shape.slice(dim + 1))];
  const values = array.toNumbers();
  const taken = Array.from({ length: outer }, (_, i) =>
    values.slice((i * size + begin) * inner, (i * size + end) * inner),
  ).flat();
  return NdArray.from(taken, [...shape.slice(0, dim), end - begin, ...shape.slice(dim + 1)], dtype);
};
