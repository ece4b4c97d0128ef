import type { DType } from "../../dtype.ts";
import { ShapeError } from "../../errors.ts";
import { elementCount, formatSpec, type Shape, type TensorSpec } from "../../shape.ts";

/**
 * Sizes for selecting rows along one dimension of a tensor. The tensor has `outer` blocks of `size` rows, with `inner`
 * elements per row; `count` rows of each block are selected.
 */
export interface IndexedSizes {
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
  readonly count: number;
}

export const indexedSizes = (shape: Shape, indices: Shape, dim: number): IndexedSizes => ({
  outer: elementCount(shape.slice(0, dim)),
  size: shape[dim]!,
  inner: elementCount(shape.slice(dim + 1)),
  count: elementCount(indices),
});

/** Returns the shape of `x` with dimension `dim` replaced by the dimensions of the indices. */
export const indexedShape = (op: string, x: TensorSpec, indices: TensorSpec, dim: number): number[] => {
  if (indices.dtype !== "i32")
    throw new ShapeError(op, `indices are ${formatSpec(indices)}, but must be i32; cast them`);
  if (dim < 0 || dim >= x.shape.length)
    throw new ShapeError(op, `${formatSpec(x)} has no dimension ${dim} to index; pass a tensor of rank 1 or more`);
  return [...x.shape.slice(0, dim), ...indices.shape, ...x.shape.slice(dim + 1)];
};

/** Result for an index out of range, by dtype: NaN for floats, an extreme value for integers, true for bool. */
export const invalidValue: Readonly<Record<DType, number>> = {
  f32: NaN,
  f16: NaN,
  bf16: NaN,
  i32: -(2 ** 31),
  u32: 2 ** 32 - 1,
  u8: 255,
  bool: 1,
};
