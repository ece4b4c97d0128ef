import { ShapeError } from "../../errors.ts";
import { formatSpec, type TensorSpec } from "../../shape.ts";

/** Row range of a group: rows `begin` … `end` − 1. */
export interface GroupRange {
  readonly begin: number;
  readonly end: number;
}

/**
 * Computes the row range of each group, in order. Counts are limited to the remaining rows; negative counts are treated
 * as 0.
 */
export const groupRanges = (counts: ArrayLike<number>, rows: number): GroupRange[] => {
  let end = 0;
  return Array.from(counts, (count) => {
    const begin = end;
    end += Math.max(0, Math.min(count, rows - begin));
    return { begin, end };
  });
};

/** Throws ShapeError unless `x` is an f32 matrix and `counts` is i32 [groups]. */
export const needGroups = (op: string, x: TensorSpec, counts: TensorSpec, groups: number): void => {
  if (x.dtype !== "f32" || x.shape.length !== 2)
    throw new ShapeError(op, `got ${formatSpec(x)}, expected f32 [rows, width]; cast or reshape it`);
  if (counts.dtype !== "i32" || counts.shape.length !== 1 || counts.shape[0] !== groups)
    throw new ShapeError(
      op,
      `counts are ${formatSpec(counts)}, but ${groups} groups need i32[${groups}], the number of rows per group; cast or slice them`,
    );
};
