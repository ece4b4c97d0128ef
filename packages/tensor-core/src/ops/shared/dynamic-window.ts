import { ShapeError } from "../../errors.ts";
import type { ReferenceArray } from "../../graph/operator.ts";
import { formatShape, formatSpec, rowMajorStrides, type Shape, type TensorSpec } from "../../shape.ts";

// Windows of fixed size whose start indices are known only at run time.

/** Throws ShapeError unless `starts` is i32 [rank of x], and a slice of size `sizes` fits into `x`. */
export const needWindow = (op: string, x: TensorSpec, starts: TensorSpec, sizes: Shape): void => {
  const rank = x.shape.length;
  if (starts.dtype !== "i32" || starts.shape.length !== 1 || starts.shape[0] !== rank)
    throw new ShapeError(
      op,
      `starts are ${formatSpec(starts)}, but ${formatSpec(x)} needs i32[${rank}]: one start per dimension; cast or stack them`,
    );
  if (sizes.length !== rank || sizes.some((size, dim) => !Number.isInteger(size) || size < 0 || size > x.shape[dim]!))
    throw new ShapeError(
      op,
      `a window of ${formatShape(sizes)} does not fit into ${formatSpec(x)}; pass one size per dimension, from 0 to that of the dimension`,
    );
};

/**
 * Computes the offset, in elements, of the first element of a dynamic slice. Starts are clamped so that the slice is
 * inside `shape`.
 */
export const windowOffset = (shape: Shape, sizes: Shape, starts: ArrayLike<number>): number =>
  rowMajorStrides(shape).reduce(
    (offset, stride, dim) => offset + stride * Math.max(0, Math.min(starts[dim]!, shape[dim]! - sizes[dim]!)),
    0,
  );

/** Variant of `windowOffset` for values of the reference interpreter. */
export const referenceOffset = (x: ReferenceArray, sizes: Shape, starts: ReferenceArray): number =>
  windowOffset(x.spec.shape, sizes, starts.data);
