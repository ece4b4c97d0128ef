/** Small dense linear algebra in f64, used as reference by law tests. */

export type Matrix = readonly (readonly number[])[];

export const matrixOf = (values: readonly number[], columns: number): number[][] =>
  Array.from({ length: values.length / columns }, (_, i) => values.slice(i * columns, (i + 1) * columns));

/** Solves `a x = b` by elimination with pivoting. */
export const solve = (a: Matrix, b: readonly number[]): number[] => {
  const rows = a.map((row, i) => [...row, b[i]!]);
  const n = rows.length;
  for (let at = 0; at < n; at++) {
    const pivot = rows.reduce(
      (best, row, i) => (i >= at && Math.abs(row[at]!) > Math.abs(rows[best]![at]!) ? i : best),
      at,
    );
    [rows[at], rows[pivot]] = [rows[pivot]!, rows[at]!];
    for (let i = 0; i < n; i++) {
      if (i === at) continue;
      const factor = rows[i]![at]! / rows[at]![at]!;
      for (let k = at; k <= n; k++) rows[i]![k]! -= factor * rows[at]![k]!;
    }
  }
  return rows.map((row, i) => row[n]! / row[i]!);
};

export const kronecker = (a: Matrix, b: Matrix): number[][] =>
  a.flatMap((rowA) => b.map((rowB) => rowA.flatMap((x) => rowB.map((y) => x * y))));

export const plusDiagonal = (a: Matrix, amount: number): number[][] =>
  a.map((row, i) => row.map((value, j) => value + (i === j ? amount : 0)));

export const outer = (a: readonly number[], b: readonly number[]): number[][] => a.map((x) => b.map((y) => x * y));

export const trace = (a: Matrix): number => a.reduce((sum, row, i) => sum + row[i]!, 0);

/** Returns `B Bᵀ / columns + amount · I`, which is symmetric and positive definite. */
export const gramOf = (b: Matrix, amount = 0): number[][] =>
  plusDiagonal(
    b.map((x) => b.map((y) => x.reduce((sum, value, k) => sum + value * y[k]!, 0) / x.length)),
    amount,
  );

const times = (a: Matrix, b: Matrix): number[][] =>
  a.map((row) => b[0]!.map((_, j) => row.reduce((sum, value, k) => sum + value * b[k]![j]!, 0)));

export const transposed = (a: Matrix): number[][] => a[0]!.map((_, j) => a.map((row) => row[j]!));

export const product = (...factors: readonly Matrix[]): number[][] =>
  factors.slice(1).reduce<number[][]>(
    (left, right) => times(left, right),
    factors[0]!.map((row) => [...row]),
  );

/**
 * Returns the eigenvalues and eigenvectors (as columns) of a symmetric matrix, from Jacobi rotations until convergence.
 */
export const eigen = (a: Matrix): { readonly values: number[]; readonly vectors: number[][] } => {
  const n = a.length;
  let m = a.map((row) => [...row]);
  let vectors: number[][] = m.map((row, i) => row.map((_, j) => (i === j ? 1 : 0)));
  for (let sweep = 0; sweep < 60; sweep++)
    for (let p = 0; p < n; p++)
      for (let q = p + 1; q < n; q++) {
        if (Math.abs(m[p]![q]!) < 1e-300) continue;
        const angle = 0.5 * Math.atan2(2 * m[p]![q]!, m[q]![q]! - m[p]![p]!);
        const [c, s] = [Math.cos(angle), Math.sin(angle)];
        const turn = m.map((row, i) =>
          row.map((_, j) =>
            i === p && j === p
              ? c
              : i === q && j === q
                ? c
                : i === p && j === q
                  ? s
                  : i === q && j === p
                    ? -s
                    : i === j
                      ? 1
                      : 0,
          ),
        );
        m = product(transposed(turn), m, turn);
        vectors = product(vectors, turn);
      }
  return { values: m.map((row, i) => row[i]!), vectors };
};

/** Returns a symmetric matrix with `fn` applied to each eigenvalue. */
export const spectral = (a: Matrix, fn: (value: number) => number): number[][] => {
  const { values, vectors } = eigen(a);
  const scaled = vectors.map((row) => row.map((value, j) => value * fn(values[j]!)));
  return product(scaled, transposed(vectors));
};
