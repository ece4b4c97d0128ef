import { ShapeError } from "../../errors.ts";
import type { ReferenceArray } from "../../graph/operator.ts";
import { formatShape, formatSpec, rowMajorStrides, type Shape, type TensorSpec } from "../../shape.ts";

// A window of fixed size that begins at indices known only when the graph runs.

/** @throws ShapeError unless `starts` are i32, one per dimension of `x`, and a window of `sizes` fits into `x`. */
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
      `a window of ${formatShape(sizes)} does not lie in ${formatSpec(x)}; give one size per dimension, from 0 to that of the dimension`,
    );
};

/** The first element of the window, with each start moved to the nearest one at which the window lies inside. */
export const windowOffset = (shape: Shape, sizes: Shape, starts: ArrayLike<number>): number =>
  rowMajorStrides(shape).reduce(
    (offset, stride, dim) => offset + stride * Math.max(0, Math.min(starts[dim]!, shape[dim]! - sizes[dim]!)),
    0,
  );

/** `windowOffset` of values of the reference interpreter. */
export const referenceOffset = (x: ReferenceArray, sizes: Shape, starts: ReferenceArray): number =>
  windowOffset(x.spec.shape, sizes, starts.data);
