/** Small dense linear algebra in f64, for what laws compare with. */

export type Matrix = readonly (readonly number[])[];

export const matrixOf = (values: readonly number[], columns: number): number[][] =>
  Array.from({ length: values.length / columns }, (_, i) => values.slice(i * columns, (i + 1) * columns));

/** `x` with `a x = b`, by elimination with pivots. */
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

/** `B Bᵀ / columns + amount · I`: symmetric, positive definite. */
export const gramOf = (b: Matrix, amount = 0): number[][] =>
  plusDiagonal(
    b.map((x) => b.map((y) => x.reduce((sum, value, k) => sum + value * y[k]!, 0) / x.length)),
    amount,
  );
