import { elementCount, type Shape } from "@skein/tensor-core";

/** A shape seen from one of its dimensions: [outer, size, inner]. */
export const alongDim = (shape: Shape, dim: number): { outer: number; size: number; inner: number } => ({
  outer: elementCount(shape.slice(0, dim)),
  size: shape[dim]!,
  inner: elementCount(shape.slice(dim + 1)),
});
