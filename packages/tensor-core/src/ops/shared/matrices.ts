import { ShapeError } from "../../errors.ts";
import { elementCount, formatSpec, type TensorSpec } from "../../shape.ts";

/** How many square matrices a tensor has, and how large one is. */
export const squaresOf = (spec: TensorSpec): { batch: number; size: number } => ({
  batch: elementCount(spec.shape.slice(0, -2)),
  size: spec.shape.at(-1)!,
});

/** An f32 tensor of square matrices, or an error. */
export const needSquares = (op: string, a: TensorSpec): void => {
  if (a.dtype !== "f32" || a.shape.length < 2 || a.shape.at(-1) !== a.shape.at(-2))
    throw new ShapeError(
      op,
      `${formatSpec(a)} was given, it takes square f32 matrices [..., n, n]; cast or reshape it`,
    );
};
