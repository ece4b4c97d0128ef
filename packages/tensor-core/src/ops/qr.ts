import { ShapeError } from "../errors.ts";
import { qrGradient } from "../functions/decomposition.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec, type TensorSpec } from "../shape.ts";

/** Returns the number of matrices in a tensor, and the numbers of rows and columns of each matrix. */
const sizesOf = ({ shape }: TensorSpec): { batch: number; rows: number; columns: number } => ({
  batch: elementCount(shape.slice(0, -2)),
  rows: shape.at(-2)!,
  columns: shape.at(-1)!,
});

/** Applies a Householder reflection to one column of a matrix, from row `first` on: `x ← x − (v · x) v`. */
const reflect = (x: Float64Array, v: Float64Array, first: number): void => {
  let sum = 0;
  for (let i = first; i < v.length; i++) sum += v[i]! * x[i]!;
  for (let i = first; i < v.length; i++) x[i]! -= sum * v[i]!;
};

const lengthOf = (x: Float64Array): number => Math.sqrt(x.reduce((sum, entry) => sum + entry * entry, 0));

/**
 * Computes the thin QR factors of one matrix, given by its columns. Overwrites `columns` with the columns of r.
 *
 * @returns Columns of q.
 */
const householder = (columns: readonly Float64Array[], rows: number): Float64Array[] => {
  const reflectors: Float64Array[] = [];
  columns.forEach((column, k) => {
    reflectors.forEach((v, j) => reflect(column, v, j));
    const norm = lengthOf(column.subarray(k));
    const v = new Float64Array(rows);
    if (lengthOf(column.subarray(k + 1)) > 0) {
      v.set(column.subarray(k), k);
      v[k]! += column[k]! < 0 ? -norm : norm;
      const length = Math.sqrt(norm * (norm + Math.abs(column[k]!)));
      for (let i = k; i < rows; i++) v[i]! /= length;
      column[k] = column[k]! < 0 ? norm : -norm;
      column.fill(0, k + 1);
    }
    reflectors.push(v);
  });
  return columns.map((_, k) => {
    const q = new Float64Array(rows);
    q[k] = 1;
    for (let j = columns.length - 1; j >= 0; j--) reflect(q, reflectors[j]!, j);
    return q;
  });
};

/**
 * Thin QR factors `a = q r` of matrices with at least as many rows as columns. The columns of q are orthonormal; r is
 * upper triangular with a nonnegative diagonal. If columns of `a` are linearly dependent, r has zeros (or rounding
 * errors) on its diagonal, and the columns of q are still orthonormal. If `a` contains NaN or infinity, all entries of
 * q and r are NaN.
 *
 * Gradient: see `qrGradient`.
 */
export const qrOperator: Operator = defineOperator({
  name: "qr",
  infer: ([a]) => {
    if (a!.dtype !== "f32" || a!.shape.length < 2 || a!.shape.at(-2)! < a!.shape.at(-1)!)
      throw new ShapeError(
        "qr",
        `got ${formatSpec(a!)}, expected f32 matrices [..., n, m] with n ≥ m; cast it, or decompose its transpose`,
      );
    return [
      { dtype: "f32", shape: a!.shape },
      { dtype: "f32", shape: [...a!.shape.slice(0, -2), a!.shape.at(-1)!, a!.shape.at(-1)!] },
    ];
  },
  vjp: ({ outputs: [q, r], cotangents: [gradQ, gradR] }) => [qrGradient(q!, r!, gradQ!, gradR!)],
  cost: ([a], [q, r]) => {
    const { batch, rows, columns } = sizesOf(a!);
    return {
      // Half of the flops are for q, half for r.
      flops: batch * 4 * columns ** 2 * (rows - columns / 3),
      bytesRead: byteLength(a!),
      bytesWritten: byteLength(q!) + byteLength(r!),
    };
  },
  reference: ([a]) => {
    const { batch, rows, columns } = sizesOf(a!.spec);
    const q = new Float64Array(batch * rows * columns).fill(NaN);
    const r = new Float64Array(batch * columns * columns).fill(NaN);
    for (let matrix = 0; matrix < batch; matrix++) {
      const start = matrix * rows * columns;
      const data = a!.data.subarray(start, start + rows * columns);
      if (!data.every(Number.isFinite)) continue;
      const gradR = Array.from({ length: columns }, (_, j) =>
        Float64Array.from({ length: rows }, (_, i) => data[i * columns + j]!),
      );
      const gradQ = householder(gradR, rows);
      for (let j = 0; j < columns; j++) {
        const isNegated = gradR[j]![j]! < 0;
        gradQ[j]!.forEach((x, i) => (q[start + i * columns + j] = isNegated ? -x : x));
        for (let k = 0; k < columns; k++) {
          const x = k < j ? 0 : gradR[k]![j]!;
          r[(matrix * columns + j) * columns + k] = isNegated && k >= j ? -x : x;
        }
      }
    }
    return [q, r];
  },
});
