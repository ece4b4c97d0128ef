import {
  absolute,
  cast,
  ceil,
  clip,
  type DType,
  dtypes,
  floor,
  greater,
  identity,
  isFloat,
  logicalNot,
  maximum,
  multiply,
  NdArray,
  negate,
  optimizationBarrier,
  power,
  round,
  shiftLeft,
  shiftRight,
  sign,
  stopGradient,
  type Tensor,
  where,
} from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";
import { binaryCases } from "./binary.ts";
import { adversarial, edges, elementary, exact, outer, rounded } from "./elementwise-values.ts";
import { unaryCases } from "./unary.ts";

const shifts = (dtype: DType): ConformanceCase[] => {
  const x = NdArray.from(
    edges[dtype].flatMap((value) => [value, value, value, value, value]),
    undefined,
    dtype,
  );
  const by = NdArray.from(
    Array.from(x.data, (_, i) => [0, 1, 13, 31, 33][i % 5]!),
    undefined,
    dtype,
  );
  return [
    { op: "shift-left", name: `amounts of their own, ${dtype}`, fn: (a, b) => shiftLeft(a!, b!), inputs: [x, by] },
    { op: "shift-left", name: `one amount, ${dtype}`, fn: (a) => shiftLeft(a!, 5), inputs: [x] },
    { op: "shift-right", name: `amounts of their own, ${dtype}`, fn: (a, b) => shiftRight(a!, b!), inputs: [x, by] },
    { op: "shift-right", name: `one amount, ${dtype}`, fn: (a) => shiftRight(a!, 9), inputs: [x] },
  ];
};

const selections = (["f32", "i32", "u32", "u8", "bool"] as const).flatMap((dtype): ConformanceCase[] => [
  {
    op: "where",
    name: `equal shapes, ${dtype}`,
    fn: (c, a, b) => where(c!, a!, b!),
    inputs: [normalArray([5, 7], 1, "bool"), normalArray([5, 7], 2, dtype), normalArray([5, 7], 3, dtype)],
  },
  {
    op: "where",
    name: `stretched condition, ${dtype}`,
    fn: (c, a, b) => where(c!, a!, b!),
    inputs: [normalArray([5, 1], 1, "bool"), normalArray([7], 2, dtype), normalArray([5, 7], 3, dtype)],
  },
  {
    op: "where",
    name: `a number, ${dtype}`,
    fn: (c, a) => where(c!, a!, 1),
    inputs: [normalArray([1030], 1, "bool"), normalArray([1030], 2, dtype)],
  },
]);

/**
 * Values that are difficult to cast: between and beyond the ranges of the integer dtypes, and at or near rounding ties
 * of the 16-bit floats.
 */
const castable = [
  0.4, 0.5, -0.6, 1.5, 254.9, 255.5, 256, -1.5, 300.7, 2049, 2051, 65519.9, 65520, 1e-8, 3e-8, 6.1e-5, 5.96e-8,
  1.00390625, 1.01171875, 2147483520, 2147483648, 4294967040, 5e9, -5e9,
];

const casts = dtypes.flatMap((from) =>
  dtypes.map((to): ConformanceCase => {
    const values = [...edges[from], ...(isFloat(from) ? castable : []), ...normalArray([300], 21, from).toNumbers()];
    // The reference computes f32 in f64, which represents all 32-bit integers without rounding.
    return {
      op: "cast",
      name: `${from} to ${to}`,
      fn: (x) => cast(x!, to),
      inputs: [NdArray.from(values, undefined, from)],
      tolerance: isFloat(to) ? rounded : exact,
    };
  }),
);

export const elementwiseCases: readonly ConformanceCase[] = [
  ...unaryCases,
  ...binaryCases,
  ...shifts("i32"),
  ...shifts("u32"),
  ...selections,
  ...casts,
  { op: "absolute", name: "edges, i32", fn: (x) => absolute(x!), inputs: [NdArray.from(edges.i32, undefined, "i32")] },
  { op: "negate", name: "edges, i32", fn: (x) => negate(x!), inputs: [NdArray.from(edges.i32, undefined, "i32")] },
  { op: "negate", name: "edges, u32", fn: (x) => negate(x!), inputs: [NdArray.from(edges.u32, undefined, "u32")] },
  { op: "sign", name: "edges, i32", fn: (x) => sign(x!), inputs: [NdArray.from(edges.i32, undefined, "i32")] },
  { op: "logical-not", name: "bools", fn: (x) => logicalNot(x!), inputs: [normalArray([19], 1, "bool")] },
  {
    op: "optimization-barrier",
    name: "every value itself, both operands",
    fn: (x, y) => optimizationBarrier(x!, multiply(y!, 2)),
    inputs: [adversarial(1), normalArray([5], 2)],
    tolerance: exact,
  },
  {
    op: "optimization-barrier",
    name: "gradient",
    fn: (x, y) => multiply(...(optimizationBarrier(x!, y!) as [Tensor, Tensor])),
    inputs: [normalArray([7], 1), normalArray([7], 2)],
    gradient: [0, 1],
    tolerance: rounded,
  },
  { op: "identity", name: "every value itself", fn: (x) => identity(x!), inputs: [adversarial(1)], tolerance: exact },
  { op: "power", name: "edges meet", fn: (a, b) => power(a!, b!), inputs: outer("f32"), tolerance: elementary },
  {
    op: "power",
    name: "positive bases",
    fn: (a, b) => power(a!, b!),
    inputs: [uniformArray([37, 29], 0.01, 8, 1), normalArray([29], 2)],
    tolerance: elementary,
  },
  {
    op: "power",
    name: "gradient",
    fn: (a, b) => power(a!, b!),
    inputs: [uniformArray([5, 9], 0.1, 8, 1), normalArray([9], 2)],
    gradient: [0, 1],
    tolerance: elementary,
  },
  {
    op: "power",
    name: "whole exponents",
    fn: (a, b) => power(a!, b!),
    inputs: [normalArray([57, 7], 1), NdArray.from([-3, -1, 0, 1, 2, 3, 24])],
    tolerance: elementary,
  },
  {
    op: "power",
    name: "great exponents",
    fn: (a, b) => power(a!, b!),
    inputs: [uniformArray([400], 0.9, 1.1, 1), uniformArray([400], -700, 700, 2)],
    tolerance: elementary,
  },
  {
    op: "identity",
    name: "gradient",
    fn: (x) => multiply(identity(x!), x!),
    inputs: [normalArray([7], 1)],
    gradient: [0],
    tolerance: rounded,
  },
  ...(
    [
      ["ceil", ceil],
      ["floor", floor],
      ["round", round],
      ["sign", sign],
      ["stop-gradient", (x: Tensor) => stopGradient(floor(x))],
    ] as const
  ).map(
    ([op, fn]): ConformanceCase => ({
      op,
      name: "no gradient flows",
      fn: (x) => multiply(fn(x!), x!),
      inputs: [normalArray([4, 5], 1)],
      gradient: [0],
      tolerance: rounded,
    }),
  ),
  {
    op: "maximum",
    name: "ties share the gradient",
    fn: (x) => multiply(maximum(x!, identity(x!)), 3),
    inputs: [normalArray([9], 1)],
    gradient: [0],
    tolerance: rounded,
  },
  {
    op: "where",
    name: "gradient",
    fn: (x, y) => where(greater(x!, 0), multiply(x!, y!), y!),
    inputs: [normalArray([4, 5], 1), normalArray([5], 2)],
    gradient: [0, 1],
    tolerance: rounded,
  },
  {
    op: "where",
    name: "clip and its gradient",
    fn: (x) => clip(x!, -0.5, 0.75),
    inputs: [normalArray([40], 1)],
    gradient: [0],
    tolerance: exact,
  },
  {
    op: "cast",
    name: "gradient",
    fn: (x) => multiply(cast(cast(x!, "f32"), "f32"), 2),
    inputs: [normalArray([6], 1)],
    gradient: [0],
    tolerance: exact,
  },
];
