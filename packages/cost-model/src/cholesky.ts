/** A vector, or a row of a matrix. */
export type Vector = readonly number[];

/**
 * Computes the Cholesky factor of a symmetric matrix A: lower triangle L with L · Lᵀ = A, by rows. The result contains
 * NaN if A is not positive definite.
 */
export const cholesky = (matrix: readonly Vector[]): readonly Vector[] => {
  const lower: number[][] = [];
  for (const [i, row] of matrix.entries()) {
    const own: number[] = [];
    for (let j = 0; j <= i; j++) {
      const other = j === i ? own : lower[j]!;
      let left = row[j]!;
      for (let k = 0; k < j; k++) left -= own[k]! * other[k]!;
      own.push(j === i ? Math.sqrt(left) : left / other[j]!);
    }
    lower.push(own);
  }
  return lower;
};

/** Solves L · x = y by forward substitution. */
export const solveLower = (lower: readonly Vector[], right: Vector): number[] => {
  const x: number[] = [];
  for (const [i, row] of lower.entries()) {
    let left = right[i]!;
    for (let k = 0; k < i; k++) left -= row[k]! * x[k]!;
    x.push(left / row[i]!);
  }
  return x;
};

/** Solves Lᵀ · x = y by back substitution. */
export const solveTransposed = (lower: readonly Vector[], right: Vector): number[] => {
  const x: number[] = [];
  for (let i = lower.length - 1; i >= 0; i--) {
    let left = right[i]!;
    for (let k = i + 1; k < lower.length; k++) left -= lower[k]![i]! * x[k]!;
    x[i] = left / lower[i]![i]!;
  }
  return x;
};
