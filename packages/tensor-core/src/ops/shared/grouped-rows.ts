import { ShapeError } from "../../errors.ts";
import { formatSpec, type TensorSpec } from "../../shape.ts";

/** Rows `begin` … `end` − 1 of a group. */
export interface GroupRange {
  readonly begin: number;
  readonly end: number;
}

/** Rows of each group, in order; a count is limited to the remaining rows, and a negative count is 0. */
export const groupRanges = (counts: ArrayLike<number>, rows: number): GroupRange[] => {
  let end = 0;
  return Array.from(counts, (count) => {
    const begin = end;
    end += Math.max(0, Math.min(count, rows - begin));
    return { begin, end };
  });
};

/** @throws ShapeError unless `x` is an f32 matrix and the counts are i32, one per group. */
export const needGroups = (op: string, x: TensorSpec, counts: TensorSpec, groups: number): void => {
  if (x.dtype !== "f32" || x.shape.length !== 2)
    throw new ShapeError(op, `got ${formatSpec(x)}, expected f32 [rows, width]; cast or reshape it`);
  if (counts.dtype !== "i32" || counts.shape.length !== 1 || counts.shape[0] !== groups)
    throw new ShapeError(
      op,
      `counts are ${formatSpec(counts)}, but ${groups} groups need i32[${groups}], the number of rows per group; cast or slice them`,
    );
};
