import { elementCount, type Shape } from "../../shape.ts";

/** Flat positions of a line along a dimension: `size` positions `start`, `start + stride`, …. */
export interface Line {
  readonly start: number;
  readonly stride: number;
  readonly size: number;
}

/** All lines of `shape` along `dim`, in the order of the dense array without that dimension. */
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
