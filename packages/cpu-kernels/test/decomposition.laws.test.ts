import { createCpuBackend, createSharedMemory, type WasmBuild } from "@skein/cpu-kernels";
import { examples, gradedSpectrum, normalArray, symmetricArray, withSpectrum } from "@skein/testing";
import {
  type Backend,
  cholesky,
  eigh,
  evaluate,
  inverseFromCholesky,
  NdArray,
  qr,
  type Tensor,
  triangularSolve,
} from "@skein/tensor-core";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";

const roundoff = 2 ** -24;

/** Computes `x y` in f64, with x [rows, inner] and a function that returns the entries of y [inner, columns]. */
const product = (
  x: ArrayLike<number>,
  [rows, inner, columns]: readonly [number, number, number],
  y: (k: number, j: number) => number,
): Float64Array => {
  const result = new Float64Array(rows * columns);
  for (let k = 0; k < inner; k++) {
    const row = Float64Array.from({ length: columns }, (_, j) => y(k, j));
    for (let i = 0; i < rows; i++) {
      const factor = x[i * inner + k]!;
      for (let j = 0; j < columns; j++) result[i * columns + j]! += factor * row[j]!;
    }
  }
  return result;
};

/** Returns the maximum magnitude of the entries of `x − y`. NaN if an entry is NaN. */
const distance = (x: ArrayLike<number>, y: (at: number) => number): number => {
  let most = 0;
  for (let at = 0; at < x.length; at++) {
    const off = Math.abs(x[at]! - y(at));
    if (!(off <= most)) most = off;
  }
  return most;
};

const transposed = (x: readonly number[], rows: number, columns: number): number[] =>
  Array.from({ length: rows * columns }, (_, at) => x[(at % rows) * columns + Math.floor(at / rows)]!);

/** Returns the maximum magnitude of the entries of `xᵀ x − 1` for x [rows, columns]. */
const unorthogonal = (x: readonly number[], rows: number, columns: number): number =>
  distance(
    product(transposed(x, rows, columns), [columns, rows, columns], (k, j) => x[k * columns + j]!),
    (at) => Number(at % (columns + 1) === 0),
  );

const eigenparts = async (backend: Backend, a: NdArray): Promise<{ values: number[]; vectors: number[] }> => {
  const run = evaluate((x: Tensor) => {
    const { values, vectors } = eigh(x);
    return [values, vectors] as const;
  }, backend);
  const [values, vectors] = (await run(a)) as unknown as readonly NdArray[];
  return { values: values!.toNumbers(), vectors: vectors!.toNumbers() };
};

/**
 * Checks the laws of one symmetric matrix: `a v = v diag(λ)`, `vᵀ v = 1`, λ ascending, and the documented signs of v.
 */
const checkEigh = async (backend: Backend, a: NdArray): Promise<number[]> => {
  const size = a.shape.at(-1)!;
  const { values, vectors } = await eigenparts(backend, a);
  const largest = Math.max(...values.map(Math.abs));
  const moved = product(a.toNumbers(), [size, size, size], (k, j) => vectors[k * size + j]!);
  // Rounding errors of n reflections and n rotations per entry accumulate like a random walk.
  const room = 8 * Math.sqrt(size) * roundoff;
  expect(distance(moved, (at) => vectors[at]! * values[at % size]!)).toBeLessThanOrEqual(room * largest);
  expect(unorthogonal(vectors, size, size)).toBeLessThanOrEqual(room);
  expect(values.every((value, i) => i === 0 || value >= values[i - 1]!)).toBe(true);
  for (let j = 0; j < size; j++) {
    const column = Array.from({ length: size }, (_, i) => vectors[i * size + j]!);
    expect(column.find((x) => Math.abs(x) === Math.max(...column.map(Math.abs)))).toBeGreaterThan(0);
  }
  return values;
};

const checkQr = async (backend: Backend, a: NdArray): Promise<void> => {
  const [rows, columns] = a.shape as [number, number];
  const run = evaluate((x: Tensor) => {
    const factors = qr(x);
    return [factors.q, factors.r] as const;
  }, backend);
  const [q, r] = ((await run(a)) as unknown as readonly NdArray[]).map((x) => x.toNumbers()) as [number[], number[]];
  const given = a.toNumbers();
  const largest = given.reduce((most, x) => Math.max(most, Math.abs(x)), 2 ** -126);
  const room = 8 * Math.sqrt(columns) * roundoff;
  const back = product(q, [rows, columns, columns], (k, j) => r[k * columns + j]!);
  // The length of a column is at most its largest entry times the square root of the number of rows.
  expect(distance(back, (at) => given[at]!)).toBeLessThanOrEqual(room * Math.sqrt(rows) * largest);
  expect(unorthogonal(q, rows, columns)).toBeLessThanOrEqual(room);
  r.forEach((x, at) => {
    const [i, j] = [Math.floor(at / columns), at % columns];
    if (i > j) expect(x).toBe(0);
    if (i === j) expect(x).toBeGreaterThanOrEqual(0);
  });
};

describe.each(["relaxed", "simd", "scalar"] as const)("decompositions of the %s build", (build: WasmBuild) => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createCpuBackend({ build, memory: createSharedMemory(512 * 2 ** 20) });
  });

  const eigenvalues = fc.array(
    fc.oneof(
      fc.integer({ min: -3, max: 3 }),
      fc.integer({ min: -1000, max: 1000 }).map((x) => x / 1000),
      fc.constantFrom(1e-6, 1, 1 + 2 ** -22),
    ),
    { minLength: 1, maxLength: 40 },
  );

  test("eigh finds the eigenvalues from which a matrix was built, at every scale", async () => {
    await fc.assert(
      fc.asyncProperty(
        eigenvalues,
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ min: -90, max: 90 }),
        async (given, seed, power) => {
          const scale = 2 ** power;
          const values = await checkEigh(
            backend,
            withSpectrum(
              given.map((x) => x * scale),
              seed,
            ),
          );
          const largest = Math.max(...given.map(Math.abs));
          const sorted = given.toSorted((x, y) => x - y);
          expect(distance(values, (at) => sorted[at]! * scale)).toBeLessThanOrEqual(4e-6 * largest * scale);
        },
      ),
      { numRuns: examples(15, 200) },
    );
  });

  test.each([
    ["random", symmetricArray([], 200, 1)],
    ["condition 1e6", withSpectrum(gradedSpectrum(200, 1e6))],
    ["many equal values", withSpectrum(Array.from({ length: 150 }, (_, k) => [1, 1, -2][k % 3]!))],
  ] as const)("eigh: residual and orthogonality, %s", async (_, a) => {
    const values = await checkEigh(backend, a);
    const trace = a.toNumbers().reduce((sum, x, at) => sum + (at % (values.length + 1) === 0 ? x : 0), 0);
    expect(Math.abs(values.reduce((sum, x) => sum + x, 0) - trace)).toBeLessThan(1e-4 * Math.max(...values));
  });

  test.each([512, 1024])("eigh of %d rows: residual and orthogonality", { tags: "full" }, async (size) => {
    await checkEigh(backend, symmetricArray([], size, 2));
    await checkEigh(backend, withSpectrum(gradedSpectrum(size, 1e6)));
  });

  test("a matrix that is not finite gives NaN, without affecting other matrices of its batch", async () => {
    const size = 40;
    for (const entry of [Number.NaN, Infinity, -Infinity]) {
      const a = symmetricArray([3], size);
      a.data[size * size + 7 * size + 3] = entry;
      const { values, vectors } = await eigenparts(backend, a);
      expect(values.map(Number.isNaN)).toEqual(values.map((_, at) => Math.floor(at / size) === 1));
      expect(vectors.map(Number.isNaN)).toEqual(vectors.map((_, at) => Math.floor(at / size ** 2) === 1));
    }
  });

  test("qr of any shape and rank: product, orthogonality, a triangle with a positive diagonal", async () => {
    const shape = fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 70 }));
    await fc.assert(
      fc.asyncProperty(
        shape,
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 8 }),
        async ([more, columns], seed, rank) => {
          const rows = columns + more;
          const factor = normalArray([columns, rank], seed + 1).toNumbers();
          const left = normalArray([rows, rank], seed).toNumbers();
          const low = product(left, [rows, rank, columns], (k, j) => factor[j * rank + k]!);
          await checkQr(backend, NdArray.from([...low], [rows, columns]));
          await checkQr(backend, normalArray([rows, columns], seed));
        },
      ),
      { numRuns: examples(8, 60) },
    );
  });

  test.each([
    ["condition 1e6", withSpectrum(gradedSpectrum(200, 1e6))],
    ["tall", normalArray([300, 130], 3)],
  ] as const)("qr: product and orthogonality, %s", (_, a) => checkQr(backend, a));

  test.each([512, 1024])("qr of %d rows: product and orthogonality", { tags: "full" }, (size) =>
    checkQr(backend, normalArray([size, size], 4)),
  );

  test.each([
    [40, 1e6],
    [200, 1e6],
    [200, 10],
  ])("the inverse of %d rows of condition %d", async (size, condition) => {
    const eigenvalues = gradedSpectrum(size, condition);
    const a = withSpectrum(eigenvalues);
    const inverse = (await evaluate((x: Tensor) => inverseFromCholesky(cholesky(x)), backend)(a)).toNumbers();
    // The entries of `a` are rounded, which changes its inverse by a fraction of its largest entry: the condition
    // number times the roundoff.
    const exact = withSpectrum(eigenvalues.map((x) => 1 / x)).toNumbers();
    expect(distance(inverse, (at) => exact[at]!) / condition).toBeLessThan(4 * condition * roundoff);
    const one = product(a.toNumbers(), [size, size, size], (k, j) => inverse[k * size + j]!);
    expect(distance(one, (at) => Number(at % (size + 1) === 0))).toBeLessThan(condition * roundoff);
  });

  // Columns that begin with zeros are not solved from the first row.
  test.each([
    ["NaN", Number.NaN, 3],
    ["zero", 0, 60],
  ])("a triangle with %s in a row affects the zeros of the right-hand side", async (_, entry, column) => {
    const size = 120;
    const l = NdArray.from(
      Array.from({ length: size ** 2 }, (_, at) => (at % (size + 1) === 0 ? 2 : at % size < at / size ? 0.01 : 0)),
      [size, size],
    );
    l.data[60 * size + column] = entry;
    const one = NdArray.from(
      Array.from({ length: size ** 2 }, (_, at) => Number(at % (size + 1) === 0)),
      [size, size],
    );
    const solve = (x: Tensor, b: Tensor): Tensor => triangularSolve(x, b, { lower: true, transpose: false });
    const x = (await evaluate(solve, backend)(l, one)).toNumbers();
    // From this row on, the later columns also contain 0 · NaN or 0 / 0.
    expect(x.map((value) => Number.isFinite(value))).toEqual(x.map((_, at) => at < 60 * size));
  });
});
