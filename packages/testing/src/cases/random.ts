import {
  arange,
  bernoulli,
  categorical,
  constant,
  dropout,
  type DType,
  dtypes,
  foldIn,
  full,
  iota,
  multiply,
  NdArray,
  normal,
  randomBits,
  randomKey,
  type Shape,
  splitKey,
  uniform,
} from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray as values } from "../seeded.ts";

const keys: readonly NdArray[] = [
  randomKey(0),
  randomKey(7),
  NdArray.from([2 ** 32 - 1, 2 ** 32 - 1], [2], "u32"),
  NdArray.from([0x13198a2e, 0x03707344], [2], "u32"),
];

const shapes: readonly Shape[] = [[], [0], [1], [2], [7], [8], [3, 5], [1003]];

const bits = keys.flatMap((key, i) =>
  shapes.map(
    (shape): ConformanceCase => ({
      op: "random-bits",
      name: `key ${i}, [${shape.join()}]`,
      fn: (x) => randomBits(x!, shape),
      inputs: [key],
    }),
  ),
);

const folds = keys.map(
  (key, i): ConformanceCase => ({
    op: "fold-in",
    name: `key ${i}`,
    fn: (x, step) => [foldIn(x!, step!), foldIn(x!, 12), foldIn(foldIn(x!, 2 ** 32 - 1), 1), ...splitKey(x!, 3)],
    inputs: [key, NdArray.scalar(41 + i, "u32")],
  }),
);

const draws: readonly ConformanceCase[] = [
  {
    op: "random-bits",
    name: "uniform, exactly",
    fn: (key) => uniform(key!, [301]),
    inputs: [keys[1]!],
    tolerance: { absolute: 0, relative: 0 },
  },
  {
    op: "random-bits",
    name: "uniform in a range",
    fn: (key) => uniform(key!, [5, 3], { low: -2, high: 6 }),
    inputs: [keys[1]!],
  },
  {
    op: "random-bits",
    name: "normal",
    fn: (key) => normal(key!, [1003]),
    inputs: [keys[1]!],
    tolerance: { absolute: 4e-6, relative: 2e-6 },
  },
  {
    op: "random-bits",
    name: "normal with mean and deviation",
    fn: (key) => normal(key!, [9], { mean: 3, deviation: 0.5 }),
    inputs: [keys[1]!],
  },
  { op: "random-bits", name: "bernoulli", fn: (key) => bernoulli(key!, 0.25, [57]), inputs: [keys[1]!] },
  {
    op: "random-bits",
    name: "categorical",
    fn: (key, logits) => categorical(key!, logits!),
    inputs: [keys[1]!, values([40, 9], 3)],
  },
  {
    op: "random-bits",
    name: "dropout and its gradient",
    fn: (key, x) => dropout(x!, 0.4, key!),
    inputs: [keys[1]!, values([6, 7], 3)],
    gradient: [1],
  },
];

const fills = dtypes.flatMap((dtype): ConformanceCase[] => [
  ...([[], [0], [1], [3, 5], [1030]] as readonly Shape[]).map((shape) => ({
    op: "constant",
    name: `[${shape.join()}], ${dtype}`,
    fn: () => full(shape, 1, dtype),
    inputs: [],
  })),
  {
    op: "literal",
    name: `nested, ${dtype}`,
    fn: () =>
      constant(
        [
          [1, 0, 3],
          [0, 5, 250],
        ],
        dtype,
      ),
    inputs: [],
  },
  { op: "literal", name: `none, ${dtype}`, fn: () => constant([], dtype), inputs: [] },
]);

const awkward: readonly ConformanceCase[] = [
  ...[-0, NaN, Infinity, -Infinity, 1e-40, -3.5].map(
    (value): ConformanceCase => ({
      op: "constant",
      name: `${Object.is(value, -0) ? "-0" : value}`,
      fn: () => full([5], value),
      inputs: [],
    }),
  ),
  {
    op: "literal",
    name: "what JSON cannot carry",
    fn: () => constant([-0, NaN, Infinity, -Infinity, 0.1]),
    inputs: [],
  },
  { op: "literal", name: "ends of i32", fn: () => constant([2 ** 31 - 1, -(2 ** 31)], "i32"), inputs: [] },
];

/** Conformance cases of operators without a gradient, which must not stop the gradient of other operands. */
const beside: readonly ConformanceCase[] = [
  {
    op: "constant",
    name: "gradient beside it",
    fn: (x) => multiply(full([4], 2.5), x!),
    inputs: [values([4], 1)],
    gradient: [0],
  },
  {
    op: "literal",
    name: "gradient beside it",
    fn: (x) => multiply(constant([1, -2, 3]), x!),
    inputs: [values([3], 1)],
    gradient: [0],
  },
  {
    op: "iota",
    name: "gradient beside it",
    fn: (x) => multiply(arange(4, "f32"), x!),
    inputs: [values([4], 1)],
    gradient: [0],
  },
  {
    op: "fold-in",
    name: "gradient beside it",
    fn: (key, x) => multiply(uniform(foldIn(key!, 3), [5]), x!),
    inputs: [keys[1]!, values([5], 1)],
    gradient: [1],
  },
  {
    op: "random-bits",
    name: "gradient beside it",
    fn: (key, x) => multiply(uniform(key!, [5]), x!),
    inputs: [keys[1]!, values([5], 1)],
    gradient: [1],
  },
];

const counts = (["f32", "i32", "u32"] as readonly DType[]).flatMap((dtype): ConformanceCase[] => [
  { op: "iota", name: `arange, ${dtype}`, fn: () => arange(37, dtype), inputs: [] },
  ...(
    [
      [[3, 4, 5], 0],
      [[3, 4, 5], 1],
      [[3, 4, 5], -1],
      [[0, 2], 0],
      [[2, 0], 0],
    ] as readonly (readonly [Shape, number])[]
  ).map(([shape, dim]) => ({
    op: "iota",
    name: `dim ${dim} of [${shape.join()}], ${dtype}`,
    fn: () => iota(shape, dtype, { dim }),
    inputs: [],
  })),
]);

/** Conformance cases of operators that create values: random streams, constants, counts. */
export const randomCases: readonly ConformanceCase[] = [
  ...bits,
  ...folds,
  ...draws,
  ...fills,
  ...awkward,
  ...beside,
  ...counts,
];
