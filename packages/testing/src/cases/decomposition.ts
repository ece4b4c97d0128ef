import {
  cholesky,
  choleskySolve,
  eigh,
  expandDims,
  inverseFromCholesky,
  matmul,
  multiply,
  NdArray,
  qr,
  type Shape,
  subtract,
  type Tensor,
  triangularSolve,
  triu,
} from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, seeded } from "../seeded.ts";
import { gradedSpectrum, symmetricArray, withSpectrum } from "../symmetric.ts";

/**
 * Returns positive definite matrices `w wᵀ + diagonal·I`, symmetric in f32. Entries of w have a standard deviation of
 * 1/√size, so eigenvalues range from `diagonal` to about 4 + `diagonal`.
 */
const definite = (batch: Shape, size: number, diagonal = 1, seed = 1): NdArray => {
  const count = batch.reduce((product, dim) => product * dim, 1);
  const factor = normalArray([count, size, size], seed).toNumbers();
  const values: number[] = [];
  for (let matrix = 0; matrix < count; matrix++) {
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) {
        let sum = i === j ? diagonal * size : 0;
        for (let k = 0; k < size; k++)
          sum += factor[(matrix * size + i) * size + k]! * factor[(matrix * size + j) * size + k]!;
        values.push(sum / Math.max(1, size));
      }
    }
  }
  return NdArray.from(values, [...batch, size, size]);
};

/**
 * Returns square matrices for tests of triangular solves. Diagonal entries are in ±[1, 2) and all other entries are
 * small, so that solutions have a magnitude of about 1. The triangle that the solve must not read is filled, too.
 */
const triangle = (batch: Shape, size: number): NdArray => {
  const random = seeded(5);
  const count = batch.reduce((product, dim) => product * dim, 1);
  const values = Array.from({ length: count * size * size }, (_, at) => {
    const value = 2 * random() - 1;
    const onDiagonal = Math.floor(at / size) % size === at % size;
    return onDiagonal ? Math.sign(value) * (1 + Math.abs(value)) : value / Math.sqrt(size);
  });
  return NdArray.from(values, [...batch, size, size]);
};

/**
 * Returns a positive definite matrix in which diagonal entry `failing` is replaced by `pivot`, a negative number or
 * zero.
 */
const indefinite = (size: number, failing: number, pivot: number): NdArray => {
  const values = definite([], size)
    .toNumbers()
    .map((value, at) => (at === failing * (size + 1) ? pivot : value));
  return NdArray.from(values, [size, size]);
};

/** Returns a matrix with condition number 1e4, which f32 can still factorize. Errors grow with the condition number. */
const stiff = (size: number): NdArray => definite([], size, 1e-4, 3);

const sizes: readonly (readonly [name: string, batch: Shape, size: number])[] = [
  ["one by one", [], 1],
  ["two by two", [], 2],
  ["odd size", [], 7],
  ["beyond half a block", [], 33],
  ["beyond a block", [], 65],
  ["several blocks", [], 150],
  ["batch of 2 × 3", [2, 3], 5],
  ["batch beyond a block", [2], 67],
  ["no rows", [], 0],
  ["empty batch", [0], 3],
];

const choleskyRows: readonly ConformanceCase[] = [
  ...sizes.map(
    ([name, batch, size]): ConformanceCase => ({
      op: "cholesky",
      name,
      fn: (a) => cholesky(a!),
      inputs: [definite(batch, size)],
      ...(size > 0 && size <= 70 ? { gradient: [0] } : {}),
    }),
  ),
  {
    op: "cholesky",
    name: "ill-conditioned",
    fn: (a) => cholesky(a!),
    inputs: [stiff(33)],
    // Rounding error of the pivots, 6e-8, divided by the smallest eigenvalue, 1e-4.
    tolerance: { absolute: 2e-3, relative: 2e-3 },
  },
  ...(
    [
      ["first pivot negative", 5, 0, -1],
      ["inner pivot negative", 9, 4, -1],
      ["pivot zero", 3, 0, 0],
      ["pivot negative in the second block", 150, 100, -3],
    ] as const
  ).map(
    ([name, size, failing, pivot]): ConformanceCase => ({
      op: "cholesky",
      name: `not definite, ${name}`,
      fn: (a) => cholesky(a!),
      inputs: [indefinite(size, failing, pivot)],
    }),
  ),
  {
    op: "cholesky",
    name: "solve",
    fn: (a, b) => choleskySolve(cholesky(a!), b!),
    inputs: [definite([], 9), normalArray([9, 4], 2)],
    gradient: [0, 1],
  },
  {
    op: "cholesky",
    name: "inverse",
    fn: (a) => inverseFromCholesky(cholesky(a!)),
    inputs: [definite([2], 6)],
    gradient: [0],
  },
  {
    op: "cholesky",
    name: "inverse, beyond a block",
    fn: (a) => inverseFromCholesky(cholesky(a!)),
    inputs: [definite([], 67)],
  },
  {
    op: "cholesky",
    name: "inverse, condition 1e6",
    // Scaled so that the largest entries are near 1.
    fn: (a) => multiply(inverseFromCholesky(cholesky(a!)), 1e-6),
    inputs: [withSpectrum(gradedSpectrum(12, 1e6))],
    // Twice the condition number times the rounding error of f32.
    tolerance: { absolute: 0.1, relative: 0 },
  },
];

const solves: readonly (readonly [name: string, batch: Shape, size: number, columns: number])[] = [
  ["one by one", [], 1, 1],
  ["one column", [], 7, 1],
  ["odd sizes", [], 5, 3],
  ["beyond a block", [], 65, 17],
  ["several blocks", [], 150, 70],
  ["batch of 2 × 3", [2, 3], 4, 5],
  ["batch beyond a block", [2], 67, 3],
];

const solveRows: readonly ConformanceCase[] = [false, true].flatMap((transpose) =>
  [true, false].flatMap((lower) =>
    solves.map(
      ([name, batch, size, columns]): ConformanceCase => ({
        op: "triangular-solve",
        name: `${name}, ${lower ? "lower" : "upper"}${transpose ? " transposed" : ""}`,
        fn: (l, b) => triangularSolve(l!, b!, { lower, transpose }),
        inputs: [triangle(batch, size), normalArray([...batch, size, columns], 2)],
        ...(size <= 70 ? { gradient: [0, 1] } : {}),
      }),
    ),
  ),
);

/**
 * Returns the eigenvalues λ, the residual A V − V diag(λ), and Vᵀ V. These results do not depend on the signs of
 * eigenvectors, or on the choice of eigenvectors for equal eigenvalues.
 */
const eigenLaws = (a: Tensor): Tensor[] => {
  const { values, vectors } = eigh(a);
  const residual = subtract(matmul(a, vectors), multiply(vectors, expandDims(values, { dims: -2 })));
  return [values, residual, matmul(vectors, vectors, { transposeA: true })];
};

/**
 * Returns symmetric matrices with diagonal 0, 1, 2, … and small other entries. Eigenvalues are about 1 apart, so that
 * eigenvectors can be compared individually.
 */
const separated = (batch: Shape, size: number): NdArray => {
  const values = symmetricArray(batch, size, 4)
    .toNumbers()
    .map((value, at) => (0.3 * value) / Math.sqrt(size) + (Math.floor(at / size) % size === at % size ? at % size : 0));
  return NdArray.from(values, [...batch, size, size]);
};

const filled = (size: number, entry: (i: number, j: number) => number): NdArray =>
  NdArray.from(
    Array.from({ length: size * size }, (_, at) => entry(Math.floor(at / size), at % size)),
    [size, size],
  );

/**
 * Test cases of `eigh`: symmetric matrices whose eigenvectors are not compared individually. `norm` is about the
 * largest magnitude of an eigenvalue, and at least 1. The tolerance is proportional to `norm`.
 */
const hardSymmetric: readonly (readonly [name: string, a: NdArray, norm: number])[] = [
  ["odd size", symmetricArray([], 7), 5],
  ["beyond a block of reflections", symmetricArray([], 37), 12],
  ["several panels", symmetricArray([], 70), 17],
  ["zeros", filled(6, () => 0), 1],
  ["identity", filled(9, (i, j) => (i === j ? 1 : 0)), 1],
  ["diagonal, unsorted and repeated", filled(11, (i, j) => (i === j ? [3, -1, 2][i % 3]! : 0)), 3],
  ["all ones", filled(13, () => 1), 13],
  ["tridiagonal", filled(10, (i, j) => (i === j ? 2 : Math.abs(i - j) === 1 ? -1 : 0)), 4],
  ["blocks", filled(12, (i, j) => (i >> 2 === j >> 2 ? 1 + ((i + j) % 3) : 0)), 9],
  ["two values, repeated", withSpectrum(Array.from({ length: 34 }, (_, k) => (k % 2 === 0 ? 1 : -2))), 2],
  ["values a rounding apart", withSpectrum(Array.from({ length: 16 }, (_, k) => 1 + k * 2 ** -23)), 1],
  ["condition 1e6", withSpectrum(gradedSpectrum(33, 1e6)), 1],
  ["one outlier", withSpectrum([...gradedSpectrum(16, 4), -1000]), 1000],
  ["huge entries", filled(5, (i, j) => 1e30 * (1 + Math.min(i, j))), 2e31],
  ["tiny entries", filled(5, (i, j) => 1e-30 * (1 + Math.min(i, j))), 1],
];

const eighRows: readonly ConformanceCase[] = [
  ...(
    [
      ["one by one", [], 1],
      ["two by two", [], 2],
      ["odd size", [], 5],
      ["beyond a block", [], 35],
      ["batch of 2 × 3", [2, 3], 4],
      ["batch beyond a panel", [2], 19],
      ["no rows", [], 0],
      ["empty batch", [0], 3],
    ] as const
  ).map(
    ([name, batch, size]): ConformanceCase => ({
      op: "eigh",
      name: `separated values, ${name}`,
      fn: (a) => {
        const { values, vectors } = eigh(a!);
        return [values, vectors];
      },
      inputs: [separated(batch, size)],
      tolerance: { absolute: 2e-5, relative: 1e-5 },
      ...(size > 0 && size <= 5 ? { gradient: [0] } : {}),
    }),
  ),
  ...hardSymmetric.map(
    ([name, a, norm]): ConformanceCase => ({
      op: "eigh",
      name,
      fn: (x) => eigenLaws(x!),
      inputs: [a],
      // Covers the rounding errors of the largest entries, and of sums with a few dozen terms.
      tolerance: { absolute: 5e-6 * norm, relative: 1e-5 },
    }),
  ),
  {
    op: "eigh",
    name: "only the lower triangle is read",
    fn: (a) => {
      const { values, vectors } = eigh(a!);
      return [values, vectors];
    },
    inputs: [filled(6, (i, j) => (j > i ? Number.NaN : i === j ? i : 0.1))],
  },
  ...[Number.NaN, Infinity, -Infinity].map(
    (entry): ConformanceCase => ({
      op: "eigh",
      name: `an entry is ${entry}, in one matrix of two`,
      fn: (a) => {
        const { values, vectors } = eigh(a!);
        return [values, vectors];
      },
      inputs: [
        NdArray.from(
          separated([2], 6)
            .toNumbers()
            .map((value, at) => (at === 36 + 13 ? entry : value)),
          [2, 6, 6],
        ),
      ],
    }),
  ),
];

const factors = (a: Tensor): Tensor[] => {
  const { q, r } = qr(a);
  return [q, r];
};

/**
 * Returns Q R, Qᵀ Q, and the entries of R below the diagonal. Unlike Q and R, these results are unique for matrices of
 * any rank.
 */
const factorLaws = (a: Tensor): Tensor[] => {
  const { q, r } = qr(a);
  return [matmul(q, r), matmul(q, q, { transposeA: true }), subtract(r, triu(r))];
};

/**
 * Returns matrices with independent columns: normal entries with standard deviation 1/√(2·rows), plus 2 or −1.5 on the
 * diagonal.
 */
const independent = (batch: Shape, rows: number, columns: number): NdArray => {
  const values = normalArray([...batch, rows, columns], 6).toNumbers();
  return NdArray.from(
    values.map((value, at) => {
      const [i, j] = [Math.floor(at / columns) % rows, at % columns];
      return value / Math.sqrt(2 * rows) + (i === j ? (j % 2 === 0 ? 2 : -1.5) : 0);
    }),
    [...batch, rows, columns],
  );
};

const rectangle = (rows: number, columns: number, entry: (i: number, j: number) => number): NdArray =>
  NdArray.from(
    Array.from({ length: rows * columns }, (_, at) => entry(Math.floor(at / columns), at % columns)),
    [rows, columns],
  );

const qrRows: readonly ConformanceCase[] = [
  ...(
    [
      ["one by one", [], 1, 1],
      ["one column", [], 7, 1],
      ["square", [], 5, 5],
      ["odd sizes", [], 9, 4],
      ["a block", [], 32, 32],
      ["beyond a block", [], 41, 35],
      ["several blocks", [], 131, 70],
      ["batch of 2 × 3", [2, 3], 5, 3],
      ["batch beyond a block", [2], 40, 33],
      ["no columns", [], 4, 0],
      ["no rows", [], 0, 0],
      ["empty batch", [0], 3, 2],
    ] as const
  ).map(
    ([name, batch, rows, columns]): ConformanceCase => ({
      op: "qr",
      name,
      fn: (a) => factors(a!),
      inputs: [independent(batch, rows, columns)],
      ...(columns > 0 && rows <= 9 ? { gradient: [0] } : {}),
    }),
  ),
  ...(
    [
      ["zeros", rectangle(6, 4, () => 0), 1],
      ["rank one", rectangle(40, 36, (i, j) => ((i % 5) - 2) * ((j % 3) + 1)), 20],
      ["columns repeated", rectangle(12, 6, (i, j) => Math.sin(i * (1 + (j >> 1)))), 4],
      ["a zero column", rectangle(8, 5, (i, j) => (j === 2 ? 0 : Math.cos(1 + i * j))), 3],
      ["identity", rectangle(5, 5, (i, j) => (i === j ? 1 : 0)), 1],
      ["triangle with a negative diagonal", rectangle(7, 7, (i, j) => (i > j ? 0 : i === j ? -1 - i : 0.5)), 8],
      ["condition 1e6", withSpectrum(gradedSpectrum(35, 1e6)), 1],
      ["outliers", rectangle(34, 20, (i, j) => Math.sin(3 * i + 7 * j * j) * ((i + j) % 11 === 0 ? 1000 : 1)), 3000],
      ["huge entries", rectangle(6, 3, (i, j) => 1e30 * Math.sin(1 + i * j + i)), 3e30],
    ] as const
  ).map(
    ([name, a, norm]): ConformanceCase => ({
      op: "qr",
      name,
      fn: (x) => factorLaws(x!),
      inputs: [a],
      tolerance: { absolute: 5e-6 * norm, relative: 1e-5 },
    }),
  ),
  ...[Number.NaN, Infinity].map(
    (entry): ConformanceCase => ({
      op: "qr",
      name: `an entry is ${entry}, in one matrix of two`,
      fn: (a) => factors(a!),
      inputs: [
        NdArray.from(
          independent([2], 6, 4)
            .toNumbers()
            .map((value, at) => (at === 24 + 7 ? entry : value)),
          [2, 6, 4],
        ),
      ],
    }),
  ),
];

export const decompositionCases: readonly ConformanceCase[] = [
  ...choleskyRows,
  ...solveRows,
  ...eighRows,
  ...qrRows,
  ...[false, true].map(
    (transpose): ConformanceCase => ({
      op: "triangular-solve",
      name: `unit diagonal${transpose ? ", transposed" : ""}`,
      fn: (l, b) => triangularSolve(l!, b!, { lower: true, transpose, unitDiagonal: true }),
      inputs: [triangle([], 9), normalArray([9, 4], 2)],
      gradient: [0, 1],
    }),
  ),
  {
    op: "triangular-solve",
    name: "one triangle for a batch",
    fn: (l, b) => triangularSolve(l!, b!, { lower: true, transpose: false }),
    inputs: [triangle([], 5), normalArray([3, 5, 2], 2)],
    gradient: [0, 1],
  },
  {
    op: "triangular-solve",
    name: "no columns",
    fn: (l, b) => triangularSolve(l!, b!, { lower: true, transpose: false }),
    inputs: [triangle([], 5), normalArray([5, 0], 2)],
  },
];
