import { matmul, type Shape } from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray } from "../seeded.ts";

const shapes: readonly (readonly [name: string, rows: number, columns: number, inner: number])[] = [
  ["one by one", 1, 1, 1],
  ["one row", 1, 37, 19],
  ["one column", 37, 1, 19],
  ["outer product", 7, 13, 1],
  ["odd sizes", 5, 7, 3],
  ["whole tiles", 24, 16, 8],
  ["a row and a column over whole tiles", 25, 17, 9],
  ["a row and a column short of whole tiles", 23, 31, 33],
  ["no rows", 0, 4, 3],
  ["no columns", 4, 0, 3],
  ["empty sum", 3, 4, 0],
];

// Shapes longer than the blocks into which kernels split the inner dimension and the rows.
const long: readonly (readonly [name: string, rows: number, columns: number, inner: number])[] = [
  ["long inner dimension", 9, 11, 1100],
  ["many rows", 601, 19, 17],
  ["many columns", 19, 1043, 17],
];

const transposes: readonly (readonly [boolean, boolean])[] = [
  [false, false],
  [false, true],
  [true, false],
  [true, true],
];

const product = (
  name: string,
  rows: number,
  columns: number,
  inner: number,
  transposeA: boolean,
  transposeB: boolean,
  batch: Shape = [],
): ConformanceCase => ({
  op: "matmul",
  name: `${name}, ${transposeA ? "T" : "N"}${transposeB ? "T" : "N"}`,
  fn: (a, b) => matmul(a!, b!, { transposeA, transposeB }),
  inputs: [
    normalArray([...batch, ...(transposeA ? [inner, rows] : [rows, inner])], 1),
    normalArray([...batch, ...(transposeB ? [columns, inner] : [inner, columns])], 2),
  ],
  // Rounding errors in f32 sums of `inner` products grow like a random walk. The factor leaves room for another
  // summation order.
  tolerance: { absolute: 2e-6 * Math.max(1, Math.sqrt(inner)), relative: 1e-5 },
  ...(rows * columns * inner <= 3000 ? { gradient: [0, 1] } : {}),
});

const broadcast = (
  name: string,
  a: Shape,
  b: Shape,
  options: { transposeA?: boolean; transposeB?: boolean } = {},
): ConformanceCase => ({
  op: "matmul",
  name,
  fn: (x, y) => matmul(x!, y!, options),
  inputs: [normalArray(a, 3), normalArray(b, 4)],
  gradient: [0, 1],
});

export const linearCases: readonly ConformanceCase[] = [
  ...shapes.flatMap(([name, rows, columns, inner]) =>
    transposes.map(([a, b]) => product(name, rows, columns, inner, a, b)),
  ),
  ...long.flatMap(([name, rows, columns, inner]) =>
    transposes.map(([a, b]) => product(name, rows, columns, inner, a, b)),
  ),
  ...transposes.map(([a, b]) => product("batch of 2 × 3", 5, 9, 4, a, b, [2, 3])),
  product("empty batch", 5, 9, 4, false, false, [0]),
  broadcast("one matrix for a batch", [2, 3, 4, 5], [5, 6]),
  broadcast("one transposed matrix for a batch", [2, 3, 4, 5], [6, 5], { transposeB: true }),
  broadcast("one matrix for a transposed batch", [3, 5, 4], [5, 6], { transposeA: true }),
  broadcast("batch of one against many", [1, 4, 5], [3, 5, 2]),
  broadcast("batches stretch to each other", [2, 1, 4, 5], [3, 5, 2]),
];
