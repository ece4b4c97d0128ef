import { ShapeError } from "../../errors.ts";
import { elementCount, formatSpec, type TensorSpec } from "../../shape.ts";

/** Returns the number of square matrices in a tensor, and the number of rows of each matrix. */
export const squaresOf = (spec: TensorSpec): { batch: number; size: number } => ({
  batch: elementCount(spec.shape.slice(0, -2)),
  size: spec.shape.at(-1)!,
});

/** Throws unless a tensor is f32 and its last two dimensions are equal. */
export const needSquares = (op: string, a: TensorSpec): void => {
  if (a.dtype !== "f32" || a.shape.length < 2 || a.shape.at(-1) !== a.shape.at(-2))
    throw new ShapeError(op, `got ${formatSpec(a)}, expected square f32 matrices [..., n, n]; cast or reshape it`);
};
