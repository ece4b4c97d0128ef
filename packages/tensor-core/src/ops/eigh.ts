import { eighGradient } from "../functions/decomposition.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength } from "../shape.ts";
import { needSquares, squaresOf } from "./shared/matrices.ts";

// Maximum number of sweeps. Small off-diagonal entries converge quadratically, so even ten sweeps are rarely needed.
const maxSweeps = 60;

/** Returns the offset of entry (i, j) of a symmetric matrix; only the lower triangle is stored. */
const lowerAt = (size: number, i: number, j: number): number => Math.max(i, j) * size + Math.min(i, j);

/**
 * Diagonalizes one symmetric matrix by cyclic Jacobi rotations. Overwrites the diagonal of `a` with the eigenvalues,
 * and returns the eigenvectors as rows.
 *
 * Source: Golub and Van Loan, Matrix Computations, section 8.5.
 */
const jacobi = (a: Float64Array, size: number): Float64Array => {
  const rows = new Float64Array(size * size);
  for (let i = 0; i < size; i++) rows[i * size + i] = 1;
  const negligible = 1e-20 * a.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  for (let sweep = 0; sweep < maxSweeps; sweep++) {
    let rotated = false;
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) {
        const apq = a[p * size + q]!;
        if (Math.abs(apq) <= negligible) continue;
        rotated = true;
        const half = (a[q * size + q]! - a[p * size + p]!) / (2 * apq);
        const tangent = (half < 0 ? -1 : 1) / (Math.abs(half) + Math.hypot(1, half));
        const cosine = 1 / Math.hypot(1, tangent);
        const sine = tangent * cosine;
        const rotate = (data: Float64Array, x: number, y: number): void => {
          const [first, second] = [data[x]!, data[y]!];
          data[x] = cosine * first - sine * second;
          data[y] = sine * first + cosine * second;
        };
        for (let k = 0; k < size; k++) rotate(a, k * size + p, k * size + q);
        for (let k = 0; k < size; k++) rotate(a, p * size + k, q * size + k);
        for (let k = 0; k < size; k++) rotate(rows, p * size + k, q * size + k);
        a[p * size + q] = a[q * size + p] = 0;
      }
    }
    if (!rotated) break;
  }
  return rows;
};

/**
 * Eigenvalues and eigenvectors of symmetric matrices, `a = v diag(λ) vᵀ`: λ is ascending, and the columns of v are
 * orthonormal. In each column, the entry of largest magnitude (the first if several are equal) is positive. Only the
 * lower triangle of `a` is read. If the lower triangle contains NaN or infinity, all entries of λ and v are NaN.
 *
 * Gradient: see `eighGradient`.
 */
export const eighOperator: Operator = defineOperator({
  name: "eigh",
  infer: ([a]) => {
    needSquares("eigh", a!);
    return [
      { dtype: "f32", shape: a!.shape.slice(0, -1) },
      { dtype: "f32", shape: a!.shape },
    ];
  },
  vjp: ({ outputs: [values, vectors], cotangents: [gradValues, gradVectors] }) => [
    eighGradient(values!, vectors!, gradValues!, gradVectors!),
  ],
  cost: ([a], [values]) => {
    const { batch, size } = squaresOf(a!);
    return {
      // 4/3 n³ for the reduction to tridiagonal form, 4/3 n³ for multiplying the reflections, and 3 n³ for about n²/2
      // rotations of column pairs (6 flops per row).
      flops: batch * (17 / 3) * size ** 3,
      bytesRead: byteLength(a!) / 2,
      bytesWritten: byteLength(values!) + byteLength(a!),
    };
  },
  reference: ([a]) => {
    const { batch, size } = squaresOf(a!.spec);
    const values = new Float64Array(batch * size).fill(NaN);
    const vectors = new Float64Array(batch * size * size).fill(NaN);
    for (let matrix = 0; matrix < batch; matrix++) {
      const start = matrix * size * size;
      const full = Float64Array.from({ length: size * size }, (_, at) => {
        return a!.data[start + lowerAt(size, Math.floor(at / size), at % size)]!;
      });
      if (!full.every(Number.isFinite)) continue;
      const rows = jacobi(full, size);
      const order = Array.from({ length: size }, (_, i) => i).sort((i, j) => full[i * size + i]! - full[j * size + j]!);
      order.forEach((from, column) => {
        values[matrix * size + column] = full[from * size + from]!;
        const row = rows.subarray(from * size, (from + 1) * size);
        const largest = row.reduce((most, x) => (Math.abs(x) > Math.abs(most) ? x : most), 0);
        row.forEach((x, i) => (vectors[start + i * size + column] = largest < 0 ? -x : x));
      });
    }
    return [values, vectors];
  },
});
