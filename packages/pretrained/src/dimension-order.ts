import { elementCount, NdArray, type Shape } from "@skein/tensor-core";
import { hostArrayType, rowMajorStrides } from "@skein/tensor-core/backend";
import type { DimOrder } from "./architecture.ts";

/** Returns the inverse of a permutation of dimensions. */
export const inverseOrder = (order: DimOrder): DimOrder => order.map((_, dim) => order.indexOf(dim));

/** Returns the permuted shape: its dimension i is dimension `order[i]` of the given shape. */
export const reorderedShape = (shape: Shape, order: DimOrder): Shape => order.map((dim) => shape[dim]!);

/** Number of rows and columns copied at a time, so that reads and writes stay in the CPU cache. */
const tile = 32;

/**
 * Permutes the dimensions of an array. Values are copied bit by bit.
 *
 * Cost: one copy.
 */
export const reordered = (array: NdArray, order: DimOrder): NdArray => {
  const shape = reorderedShape(array.shape, order);
  const strides = reorderedShape(rowMajorStrides(array.shape), order);
  const out = new hostArrayType[array.dtype](new ArrayBuffer(array.data.byteLength));
  const [numRows, numColumns] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const [rowStride, columnStride] = [strides.at(-2) ?? 0, strides.at(-1) ?? 1];
  const lead = shape.slice(0, -2);
  const source = array.data;
  for (let matrix = 0; matrix < elementCount(lead); matrix++) {
    let [from, rest] = [0, matrix];
    for (let dim = lead.length - 1; dim >= 0; dim--) {
      from += (rest % lead[dim]!) * strides[dim]!;
      rest = Math.floor(rest / lead[dim]!);
    }
    const to = matrix * numRows * numColumns;
    for (let top = 0; top < numRows; top += tile)
      for (let left = 0; left < numColumns; left += tile)
        for (let row = top; row < Math.min(top + tile, numRows); row++)
          for (let column = left; column < Math.min(left + tile, numColumns); column++)
            out[to + row * numColumns + column] = source[from + row * rowStride + column * columnStride]!;
  }
  return new NdArray(array.dtype, shape, out);
};
