import { elementCount, rowMajorStrides, type Shape } from "../../shape.ts";

/**
 * Iteration space over n elements in row-major order. The space is given by its extents: the element counts of the
 * nested blocks, ascending. Shape `[64, 10]` has the extents {10, 640}; shape `[640]` has the extent {640}. Dimensions
 * of size 1 are omitted. Each extent divides the next extent.
 */
export type Extents = readonly number[];

export const extentsOf = (shape: Shape): Extents => {
  const extents: number[] = [];
  let inner = 1;
  for (const size of shape.toReversed()) {
    inner *= size;
    if (size !== 1) extents.push(inner);
  }
  return inner === 0 ? [0] : extents;
};

/**
 * Computes the coarsest iteration space that refines both `a` and `b`, or `undefined` if there is no common refinement.
 * `[64, 10]` and `[640]` have a common refinement, but not `[4, 6]` and `[6, 4]`.
 */
export const refine = (a: Extents, b: Extents): Extents | undefined => {
  const merged = [...new Set([...a, ...b])].sort((x, y) => x - y);
  return merged.every((extent, i) => i === 0 || (merged[i - 1]! > 0 && extent % merged[i - 1]! === 0))
    ? merged
    : undefined;
};

/** Returns the dimension sizes of an iteration space, outermost first. */
export const sizesOf = (extents: Extents): number[] =>
  extents.map((extent, i) => (i === 0 ? extent : extent / extents[i - 1]!)).reverse();

/**
 * Returns the strides of a dense tensor of shape `from` that is broadcast to `shape`, in elements; 0 along broadcast
 * dimensions.
 */
export const broadcastStrides = (from: Shape, shape: Shape): number[] => {
  const own = rowMajorStrides(from);
  const lead = shape.length - from.length;
  return shape.map((size, dim) => (dim < lead || (from[dim - lead] === 1 && size !== 1) ? 0 : own[dim - lead]!));
};

/** Converts the strides of a view over `shape` to strides over the finer shape `sizesOf(extents)`. */
export const refineStrides = (shape: Shape, strides: readonly number[], extents: Extents): number[] => {
  if (elementCount(shape) === 0) return [1];
  const finer: number[] = [];
  let dim = shape.length - 1;
  let inner = 1;
  for (const [i] of extents.entries()) {
    const begin = i === 0 ? 1 : extents[i - 1]!;
    while (begin >= inner * shape[dim]!) inner *= shape[dim--]!;
    finer.push(strides[dim]! * (begin / inner));
  }
  return finer.reverse();
};

/** Merges adjacent dimensions that every view traverses with a single stride. Keeps at least one dimension. */
export const collapse = (
  shape: Shape,
  views: readonly (readonly number[])[],
): { shape: number[]; views: number[][] } => {
  const sizes: number[] = [];
  const strides: number[][] = views.map(() => []);
  shape.forEach((size, dim) => {
    const joins = dim > 0 && views.every((view) => view[dim - 1] === view[dim]! * size);
    if (joins) sizes[sizes.length - 1]! *= size;
    else sizes.push(size);
    strides.forEach((list, i) => {
      if (joins) list[list.length - 1] = views[i]![dim]!;
      else list.push(views[i]![dim]!);
    });
  });
  return sizes.length === 0 ? { shape: [1], views: views.map(() => [1]) } : { shape: sizes, views: strides };
};
