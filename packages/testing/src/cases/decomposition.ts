import { cholesky, choleskySolve, inverseFromCholesky, NdArray, type Shape, triangularSolve } from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, seeded } from "../seeded.ts";

/**
 * Matrices `w wᵀ + diagonal·1` with w of entries near 1/√n, symmetric as f32: eigenvalues from `diagonal` to about 4 +
 * `diagonal`.
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
 * Triangles with diagonals in ±[1, 2) and small entries elsewhere, so that solutions stay of unit size; both triangles
 * are filled.
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

/** A definite matrix whose pivot `failing` was made negative, or zero. */
const indefinite = (size: number, failing: number, pivot: number): NdArray => {
  const values = definite([], size)
    .toNumbers()
    .map((value, at) => (at === failing * (size + 1) ? pivot : value));
  return NdArray.from(values, [size, size]);
};

/** Condition 1e4: what f32 still factors, errors grow with it. */
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
    // Rounding of the pivots, 6e-8, over the least eigenvalue, 1e-4.
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

export const decompositionCases: readonly ConformanceCase[] = [
  ...choleskyRows,
  ...solveRows,
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
