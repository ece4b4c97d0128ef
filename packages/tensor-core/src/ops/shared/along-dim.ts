import { elementCount, type Shape } from "../../shape.ts";

/**
 * One-dimensional slice of a tensor along a dimension: `size` elements with the flat indices `start`, `start + stride`
 * and so on.
 */
export interface Line {
  readonly start: number;
  readonly stride: number;
  readonly size: number;
}

/** Returns all one-dimensional slices of `shape` along `dim`, in row-major order of the other dimensions. */
export const linesAlong = (shape: Shape, dim: number): Line[] => {
  const size = shape[dim]!;
  const inner = elementCount(shape.slice(dim + 1));
  const outer = elementCount(shape.slice(0, dim));
  return Array.from({ length: outer * inner }, (_, line) => ({
    start: Math.floor(line / inner) * size * inner + (line % inner),
    stride: inner,
    size,
  }));
};
