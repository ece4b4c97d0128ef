import {
  all,
  any,
  argmax,
  argmin,
  cumsum,
  type DType,
  mean,
  multiply,
  NdArray,
  oneHot,
  reduceMax,
  reduceMin,
  type Shape,
  sum,
  topK,
  variance,
} from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

const reductions: readonly (readonly [name: string, shape: Shape, dims: readonly number[] | undefined])[] = [
  ["all of a scalar", [], undefined],
  ["all of one", [1], undefined],
  ["all of none", [0], undefined],
  ["all, odd", [5, 7, 3], undefined],
  ["last", [6, 37], [1]],
  ["last, long", [3, 1100], [1]],
  ["last, of size one", [6, 1], [1]],
  ["last, empty", [3, 0], [1]],
  ["first", [37, 6], [0]],
  ["first, one column", [37, 1], [0]],
  ["first, many rows", [700, 5], [0]],
  ["first, many columns", [9, 1100], [0]],
  ["first, empty", [0, 4], [0]],
  ["middle", [3, 19, 5], [1]],
  ["both ends", [3, 19, 5], [0, 2]],
  ["first two", [5, 4, 9], [0, 1]],
  ["every other", [2, 3, 4, 5, 2], [0, 2, 4]],
  ["every other, starting inside", [2, 3, 4, 5, 2], [1, 3]],
  ["of nothing kept", [0, 4], [1]],
];

const reductionCases = (["f32", "i32", "u32", "u8", "bool"] as const).flatMap((dtype) =>
  (
    [
      ["sum", sum],
      ["reduce-max", reduceMax],
      ["reduce-min", reduceMin],
    ] as const
  )
    .filter(([op]) => op !== "sum" || (dtype !== "u8" && dtype !== "bool"))
    .flatMap(([op, fn]) =>
      reductions.map(
        ([name, shape, dims]): ConformanceCase => ({
          op,
          name: `${name}, ${dtype}`,
          fn: (x) => fn(x!, dims === undefined ? {} : { dims }),
          inputs: [normalArray(shape, 5, dtype)],
          ...(op === "sum"
            ? { tolerance: { absolute: 2e-6, relative: 1e-6 } }
            : { tolerance: { absolute: 0, relative: 0 } }),
          ...(dtype === "f32" && shape.reduce((product, size) => product * size, 1) < 300 ? { gradient: [0] } : {}),
        }),
      ),
    ),
);

/** Returns values with a large common offset. A naive running sum would lose their small differences. */
const offset = (shape: Shape): NdArray => uniformArray(shape, 1000, 1001, 9);

const accuracy: readonly ConformanceCase[] = [
  {
    op: "sum",
    name: "a hundred thousand of one sign",
    fn: (x) => sum(x!),
    inputs: [offset([100_003])],
    tolerance: { absolute: 0, relative: 2e-7 },
  },
  {
    op: "sum",
    name: "long columns of one sign",
    fn: (x) => sum(x!, { dims: 0 }),
    inputs: [offset([20_011, 5])],
    tolerance: { absolute: 0, relative: 2e-7 },
  },
  { op: "sum", name: "wrapping integers", fn: (x) => sum(x!), inputs: [NdArray.from([2 ** 31 - 1, 1, 5], [3], "i32")] },
  {
    op: "sum",
    name: "mean, rows kept",
    fn: (x) => mean(x!, { dims: -1, keepDims: true }),
    inputs: [normalArray([4, 33], 1)],
    gradient: [0],
    tolerance: { absolute: 2e-6, relative: 2e-6 },
  },
  {
    op: "sum",
    name: "variance with correction",
    fn: (x) => variance(x!, { dims: 0, correction: 1 }),
    inputs: [normalArray([11, 6], 1)],
    gradient: [0],
    tolerance: { absolute: 2e-6, relative: 2e-6 },
  },
  {
    op: "sum",
    name: "variance of all",
    fn: (x) => variance(x!),
    inputs: [normalArray([5, 6], 1)],
    gradient: [0],
    tolerance: { absolute: 2e-6, relative: 2e-6 },
  },
];

const withNaN = (shape: Shape): NdArray =>
  NdArray.from(
    normalArray(shape, 4)
      .toNumbers()
      .map((value, i) => (i % 13 === 5 ? NaN : value)),
    shape,
  );

/** Returns an array in which all elements are `value`, except the element at index `at`, which is `other`. */
const alone = (size: number, value: number, at: number, other: number, dtype: DType = "f32"): NdArray => {
  const values = new Array<number>(size).fill(value);
  values[at] = other;
  return NdArray.from(values, [size], dtype);
};

const single = (["reduce-max", "reduce-min"] as const).flatMap((op): ConformanceCase[] => {
  const [fn, top] = op === "reduce-max" ? [reduceMax, 1] : [reduceMin, 0];
  return [0, 15, 31, 63, 64, 66].flatMap((at) => [
    { op, name: `NaN at ${at} of 67`, fn: (x) => fn(x!), inputs: [alone(67, -1, at, NaN)] },
    { op, name: `zero at ${at} of 67`, fn: (x) => fn(x!), inputs: [alone(67, 1 - 2 * top, at, 0)] },
    { op, name: `another at ${at} of 67`, fn: (x) => fn(x!), inputs: [alone(67, 2, at, 1 + 2 * top)] },
    { op, name: `another byte at ${at} of 67`, fn: (x) => fn(x!), inputs: [alone(67, 7, at, 3 + 197 * top, "u8")] },
    { op, name: `another bool at ${at} of 67`, fn: (x) => fn(x!), inputs: [alone(67, 1 - top, at, top, "bool")] },
  ]);
});

const extremes: readonly ConformanceCase[] = [
  ...single,
  {
    op: "reduce-max",
    name: "columns of bytes",
    fn: (x) => [reduceMax(x!, { dims: 0 }), reduceMin(x!, { dims: 0 })],
    inputs: [uniformArray([9, 37], 0, 256, 2, "u8")],
  },
  { op: "reduce-max", name: "NaN among the values", fn: (x) => reduceMax(x!, { dims: 1 }), inputs: [withNaN([6, 37])] },
  {
    op: "reduce-min",
    name: "NaN among the values, columns",
    fn: (x) => reduceMin(x!, { dims: 0 }),
    inputs: [withNaN([6, 37])],
  },
  {
    op: "reduce-max",
    name: "ends of i32",
    fn: (x) => [reduceMax(x!), reduceMin(x!)],
    inputs: [NdArray.from([0, 2 ** 31 - 1, -(2 ** 31)], undefined, "i32")],
  },
  {
    op: "reduce-max",
    name: "ends of u32",
    fn: (x) => [reduceMax(x!), reduceMin(x!)],
    inputs: [NdArray.from([5, 2 ** 32 - 1, 2 ** 31], undefined, "u32")],
  },
  {
    op: "reduce-max",
    name: "any",
    fn: (x) => any(x!, { dims: 1 }),
    inputs: [NdArray.from([0, 0, 0, 0, 1, 0, 1, 1, 1], [3, 3], "bool")],
  },
  {
    op: "reduce-min",
    name: "all",
    fn: (x) => all(x!, { dims: 1, keepDims: true }),
    inputs: [NdArray.from([0, 0, 0, 0, 1, 0, 1, 1, 1], [3, 3], "bool")],
  },
  { op: "reduce-min", name: "all of none", fn: (x) => [all(x!), any(x!)], inputs: [NdArray.zeros("bool", [0])] },
];

const ties = NdArray.from([3, 1, 3, -0, 0, -5, -5, 2, 3, 3, NaN, NaN, -Infinity, Infinity, 1], [3, 5]);

const positions: readonly ConformanceCase[] = [
  ...(["f32", "i32", "u32", "u8", "bool"] as readonly DType[]).flatMap((dtype) =>
    (
      [
        ["argmax", argmax],
        ["argmin", argmin],
      ] as const
    ).flatMap(([op, fn]): ConformanceCase[] => [
      { op, name: `last, ${dtype}`, fn: (x) => fn(x!), inputs: [normalArray([7, 33], 3, dtype)] },
      { op, name: `first, ${dtype}`, fn: (x) => fn(x!, { dim: 0 }), inputs: [normalArray([33, 7], 3, dtype)] },
      { op, name: `middle, ${dtype}`, fn: (x) => fn(x!, { dim: 1 }), inputs: [normalArray([2, 9, 3], 3, dtype)] },
      { op, name: `one element, ${dtype}`, fn: (x) => fn(x!), inputs: [normalArray([1], 3, dtype)] },
    ]),
  ),
  { op: "argmax", name: "ties and NaN", fn: (x) => [argmax(x!), argmax(x!, { dim: 0 })], inputs: [ties] },
  { op: "argmin", name: "ties and NaN", fn: (x) => [argmin(x!), argmin(x!, { dim: 0 })], inputs: [ties] },
  { op: "argmax", name: "no rows", fn: (x) => argmax(x!), inputs: [NdArray.zeros("f32", [0, 4])] },
];

const scans = (["f32", "i32", "u32"] as const).flatMap((dtype) =>
  [false, true].flatMap((reverse) =>
    (
      [
        [[17], 0],
        [[5, 9], 1],
        [[9, 5], 0],
        [[3, 4, 5], 1],
        [[6, 600], 0],
        [[0, 3], 0],
        [[3, 0], 1],
      ] as readonly (readonly [Shape, number])[]
    ).map(
      ([shape, dim]): ConformanceCase => ({
        op: "cumsum",
        name: `dim ${dim} of [${shape.join()}]${reverse ? ", from the end" : ""}, ${dtype}`,
        fn: (x) => cumsum(x!, { dim, reverse }),
        inputs: [normalArray(shape, 6, dtype)],
        tolerance: { absolute: 1e-6, relative: 1e-6 },
        ...(dtype === "f32" && shape.length > 1 && shape[1]! < 100 ? { gradient: [0] } : {}),
      }),
    ),
  ),
);

/**
 * Top-k cases: name, shape and k. The cases with long rows cover each algorithm that a kernel chooses by row length and
 * k: a list, a histogram, and a preselection by a sample of the row.
 */
const selections: readonly (readonly [name: string, shape: Shape, k: number])[] = [
  ["one of one", [1], 1],
  ["none", [5], 0],
  ["all", [9], 9],
  ["no rows", [0, 4], 2],
  ["two of eight experts", [31, 8], 2],
  ["a list", [3, 500], 32],
  ["a histogram", [3, 500], 33],
  ["more than half", [2, 700], 512],
  ["thinned", [40_000], 400],
  ["thinned to few", [20_000], 40],
];

const top = selections.flatMap(([name, shape, k]) =>
  [true, false].flatMap((sorted) =>
    (["value", "magnitude"] as const).map(
      (by): ConformanceCase => ({
        op: "top-k",
        name: `${name}, by ${by}${sorted ? ", sorted" : ""}`,
        fn: (x) => topK(x!, k, { sorted, by }),
        inputs: [normalArray(shape, 8)],
        tolerance: { absolute: 0, relative: 0 },
      }),
    ),
  ),
);

/** Returns integers from the complete range of the dtype, including both ends, with many equal values. */
const integersOf = (shape: Shape, dtype: "i32" | "u32"): NdArray => {
  const [least, most] = dtype === "i32" ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
  const array = uniformArray(shape, least, most, 9, dtype);
  return NdArray.from(
    array.toNumbers().map((value, i) => (i % 5 === 0 ? [least, most, 0, 1, 7][(i / 5) % 5]! : value)),
    shape,
    dtype,
  );
};

const topIntegers = (["i32", "u32"] as const).flatMap((dtype) =>
  [...selections, ["everything, several tiles", [2, 5003], 5003] as const].flatMap(([name, shape, k]) =>
    [true, false].map(
      (sorted): ConformanceCase => ({
        op: "top-k",
        name: `${name}${sorted ? ", sorted" : ""}, ${dtype}`,
        fn: (x) => topK(x!, k, { sorted }),
        inputs: [integersOf(shape, dtype)],
      }),
    ),
  ),
);

const steps = (count: number): NdArray => NdArray.from(Array.from({ length: count }, (_, i) => ((i * 7919) % 11) - 5));

const topEdges: readonly ConformanceCase[] = [
  ...[2, 4].map(
    (k): ConformanceCase => ({
      op: "top-k",
      name: `ties and NaN, ${k}`,
      fn: (x) => [...topK(x!, k), ...topK(x!, k, { sorted: false, by: "magnitude" })],
      inputs: [ties],
    }),
  ),
  {
    op: "top-k",
    name: "many ties, histogram",
    fn: (x) => [...topK(x!, 100), ...topK(x!, 100, { sorted: false })],
    inputs: [steps(1000)],
  },
  {
    op: "top-k",
    name: "many ties, thinned in vain",
    fn: (x) => [...topK(x!, 100), ...topK(x!, 100, { by: "magnitude", sorted: false })],
    inputs: [steps(30_001)],
  },
  // Every sixth value is large, and the sample for this length takes every sixth value. The sample therefore suggests
  // that all values are large.
  {
    op: "top-k",
    name: "a sample that misleads",
    fn: (x) => topK(x!, 400),
    inputs: [
      NdArray.from(
        normalArray([50_000], 2)
          .toNumbers()
          .map((value, i) => (i % 6 === 0 ? 10 + value : value)),
      ),
    ],
  },
  {
    op: "top-k",
    name: "everything in order, several tiles and NaN",
    fn: (x) => topK(x!, 5003),
    inputs: [NdArray.from([...steps(2500).toNumbers(), NaN, ...normalArray([2501], 3).toNumbers(), NaN])],
  },
  {
    op: "top-k",
    name: "below zero only, i32",
    fn: (x) => topK(x!, 60),
    inputs: [uniformArray([20_000], -(2 ** 31), -1, 3, "i32")],
  },
  {
    op: "top-k",
    name: "the upper half only, u32",
    fn: (x) => topK(x!, 60),
    inputs: [uniformArray([20_000], 2 ** 31, 2 ** 31 + 5e8, 3, "u32")],
  },
  { op: "top-k", name: "all equal", fn: (x) => topK(x!, 50), inputs: [NdArray.zeros("f32", [20_000])] },
  { op: "top-k", name: "below zero only", fn: (x) => topK(x!, 60), inputs: [uniformArray([20_000], -9, -1, 3)] },
  {
    op: "top-k",
    name: "one huge among small",
    fn: (x) => topK(x!, 40, { by: "magnitude" }),
    inputs: [
      NdArray.from(
        normalArray([20_000], 2)
          .toNumbers()
          .map((value, i) => (i === 12_345 ? -1e30 : value * 1e-20)),
      ),
    ],
  },
  { op: "top-k", name: "gradient", fn: (x) => topK(x!, 3)[0], inputs: [normalArray([4, 7], 1)], gradient: [0] },
  {
    op: "top-k",
    name: "gradient of magnitudes",
    fn: (x) => topK(x!, 3, { by: "magnitude", sorted: false })[0],
    inputs: [normalArray([7], 1)],
    gradient: [0],
  },
];

const oneHots = (["f32", "i32", "u32", "u8", "bool"] as const).flatMap((dtype): ConformanceCase[] => [
  {
    op: "one-hot",
    name: `indices out of range too, ${dtype}`,
    fn: (x) => oneHot(x!, 5, dtype),
    inputs: [NdArray.from([0, 4, 5, -1, 2, 2 ** 31 - 1], [2, 3], "i32")],
  },
  { op: "one-hot", name: `of none, ${dtype}`, fn: (x) => oneHot(x!, 3, dtype), inputs: [NdArray.zeros("i32", [0])] },
  { op: "one-hot", name: `no depth, ${dtype}`, fn: (x) => oneHot(x!, 0, dtype), inputs: [NdArray.zeros("i32", [4])] },
  { op: "one-hot", name: `a scalar, ${dtype}`, fn: (x) => oneHot(x!, 7, dtype), inputs: [NdArray.scalar(3, "i32")] },
]);

const oneHotGradient: ConformanceCase = {
  op: "one-hot",
  name: "gradient beside it",
  fn: (x, w) => multiply(oneHot(x!, 4), w!),
  inputs: [NdArray.from([2, 0, 9], undefined, "i32"), normalArray([3, 4], 1)],
  gradient: [1],
};

/** Conformance cases of reductions, cumulative sums, index searches such as argmax, and selections such as top-k. */
export const reduceCases: readonly ConformanceCase[] = [
  ...reductionCases,
  ...accuracy,
  ...extremes,
  ...positions,
  ...scans,
  ...top,
  ...topEdges,
  ...topIntegers,
  ...oneHots,
  oneHotGradient,
];
