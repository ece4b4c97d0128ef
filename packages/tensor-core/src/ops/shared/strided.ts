import type { Cost } from "../../graph/operator.ts";
import { byteLength, elementCount, type Shape, type TensorSpec } from "../../shape.ts";

/**
 * Visits each index of `shape` in row-major order. `visit` receives the row-major position of the index, and the
 * element offset of the index in the strided view, `offset + Σ index·stride`.
 */
export const walkStrided = (
  shape: Shape,
  strides: readonly number[],
  offset: number,
  visit: (position: number, viewOffset: number) => void,
): void => {
  const count = elementCount(shape);
  const index = new Array<number>(shape.length).fill(0);
  let viewOffset = offset;
  for (let position = 0; position < count; position++) {
    visit(position, viewOffset);
    for (let dim = shape.length - 1; dim >= 0; dim--) {
      viewOffset += strides[dim]!;
      if (++index[dim]! < shape[dim]!) break;
      viewOffset -= strides[dim]! * shape[dim]!;
      index[dim] = 0;
    }
  }
};

/** Returns a dense copy of a strided view. */
export const readStrided = (data: Float64Array, shape: Shape, strides: readonly number[], offset = 0): Float64Array => {
  const result = new Float64Array(elementCount(shape));
  walkStrided(shape, strides, offset, (position, viewOffset) => {
    result[position] = data[viewOffset]!;
  });
  return result;
};

/**
 * Computes the cost of an operator that moves data without arithmetic: each byte of the results is read and written
 * once.
 */
export const moveCost = (_inputs: readonly TensorSpec[], outputs: readonly TensorSpec[]): Cost => {
  const bytes = outputs.reduce((sum, output) => sum + byteLength(output), 0);
  return { flops: 0, bytesRead: bytes, bytesWritten: bytes };
};
