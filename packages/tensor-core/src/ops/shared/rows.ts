import { ShapeError } from "../../errors.ts";
import { elementCount, formatSpec, sameShape, type TensorSpec } from "../../shape.ts";

/** Returns the number of rows of a tensor, and the row width. A row runs along the last dimension. */
export const rowsOf = (spec: TensorSpec): { rows: number; width: number } => ({
  rows: elementCount(spec.shape.slice(0, -1)),
  width: spec.shape.at(-1)!,
});

/** Throws unless a tensor is f32 and has at least one dimension. */
export const needRows = (op: string, x: TensorSpec): void => {
  if (x.dtype !== "f32" || x.shape.length === 0)
    throw new ShapeError(op, `got ${formatSpec(x)}, expected f32 of rank 1 or more; cast or reshape it`);
};

/** Throws unless `vector` is f32 with one entry per column of `x`. */
export const needPerColumn = (op: string, what: string, vector: TensorSpec, x: TensorSpec): void => {
  if (vector.dtype !== "f32" || !sameShape(vector.shape, x.shape.slice(-1))) {
    throw new ShapeError(
      op,
      `${what} is ${formatSpec(vector)}, but rows of ${formatSpec(x)} need f32[${x.shape.at(-1)}]: one entry per column`,
    );
  }
};

/** Returns the maximum of a row; −∞ for an empty row. */
export const rowMax = (row: Float64Array): number =>
  row.reduce((max, value) => (Number.isNaN(value) || value > max ? value : max), -Infinity);

/**
 * Computes the maximum of a row and `Σ exp(row − max)`, without overflow; −∞ and 0 for an empty row. For a row whose
 * softmax is undefined (with NaN or +∞, or only −∞), maximum and sum are NaN.
 */
export const exponentialSums = (row: Float64Array): { max: number; total: number } => {
  const max = rowMax(row);
  const total = row.reduce((sum, value) => sum + Math.exp(value - max), 0);
  return Number.isNaN(total) ? { max: NaN, total } : { max, total };
};

/** Computes `log Σ exp(row)`. */
export const logSumExp = (row: Float64Array): number => {
  const { max, total } = exponentialSums(row);
  return max + Math.log(total);
};

/** Applies `fn` to each row, and returns an array of the resulting rows. */
export const mapRows = (
  spec: TensorSpec,
  fn: (row: number, start: number, end: number) => ArrayLike<number>,
): Float64Array => {
  const { rows, width } = rowsOf(spec);
  const result = new Float64Array(rows * width);
  for (let row = 0; row < rows; row++) result.set(Array.from(fn(row, row * width, (row + 1) * width)), row * width);
  return result;
};
