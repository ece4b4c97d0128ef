import { normalArray } from "@skein/testing";

export const hypot = (values: readonly number[]): number => Math.hypot(...values);
export const minus = (a: readonly number[], b: readonly number[]): number[] => a.map((value, i) => value - b[i]!);

/** Returns a random matrix `[n, m]` of rank at most `rank`, as a flat array. */
export const lowRank = (n: number, m: number, rank: number, seed: number): number[] => {
  const [left, right] = [normalArray([n, rank], seed).toNumbers(), normalArray([rank, m], seed + 1).toNumbers()];
  return Array.from({ length: n * m }, (_, at) => {
    const [i, j] = [Math.floor(at / m), at % m];
    return Math.fround(
      Array.from({ length: rank }, (__, k) => left[i * rank + k]! * right[k * m + j]!).reduce((sum, v) => sum + v, 0),
    );
  });
};

/** Returns column k of an orthonormal cosine basis of n dimensions (DCT-II). */
const cosine = (n: number, k: number): number[] =>
  Array.from({ length: n }, (_, i) => Math.sqrt((k === 0 ? 1 : 2) / n) * Math.cos((Math.PI * k * (i + 0.5)) / n));

/** Returns a matrix `[n, m]` with the given singular values, as a flat array: `Σ σₖ uₖ vₖᵀ` in cosine bases. */
export const withSingularValues = (n: number, m: number, values: readonly number[]): number[] => {
  const parts = values.map((value, k) => ({ value, u: cosine(n, k), v: cosine(m, k) }));
  return Array.from({ length: n * m }, (_, at) =>
    Math.fround(parts.reduce((sum, { value, u, v }) => sum + value * u[Math.floor(at / m)]! * v[at % m]!, 0)),
  );
};
