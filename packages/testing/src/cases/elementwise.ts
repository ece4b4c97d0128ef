import {
  absolute,
  add,
  bitwiseAnd,
  bitwiseOr,
  bitwiseXor,
  cast,
  ceil,
  clip,
  cos,
  divide,
  type DType,
  dtypes,
  equal,
  erf,
  exp,
  floor,
  gelu,
  greater,
  greaterEqual,
  identity,
  isFinite,
  isFloat,
  less,
  lessEqual,
  log,
  logicalAnd,
  logicalNot,
  logicalOr,
  logicalXor,
  maximum,
  minimum,
  multiply,
  NdArray,
  negate,
  notEqual,
  optimizationBarrier,
  power,
  relu,
  round,
  rsqrt,
  type Shape,
  shiftLeft,
  shiftRight,
  sigmoid,
  sign,
  silu,
  sin,
  softplus,
  sqrt,
  stopGradient,
  subtract,
  tanh,
  type Tensor,
  where,
} from "@skein/tensor-core";
import type { Tolerance } from "../closeness.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

type Unary = (x: Tensor) => Tensor;
type Binary = (a: Tensor, b: Tensor) => Tensor;

const exact: Tolerance = { absolute: 0, relative: 0 };
/** Tolerance for one rounding to f32. */
const rounded: Tolerance = { absolute: 1e-45, relative: 6e-8 };
/** Tolerance of about two units in the last place of f32. */
const elementary: Tolerance = { absolute: 1e-37, relative: 3e-7 };

const special = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  1e-40,
  -1e-40,
  1e-30,
  1e-8,
  -1e-8,
  0.3465735,
  -0.3465736,
  20.25,
  -20.25,
  87,
  -87,
  Infinity,
  -Infinity,
  NaN,
];
/**
 * Returns all special values, `extra`, and random values. The length is not a multiple of any SIMD vector or tile size.
 */
const adversarial = (scale: number, extra: readonly number[] = []): NdArray =>
  NdArray.from([
    ...special,
    ...extra,
    ...normalArray([1100], 3)
      .toNumbers()
      .map((value) => Math.fround(value * scale)),
  ]);

const smallShapes: readonly Shape[] = [[], [0], [1], [3], [4, 1], [5, 7]];

interface UnaryRow {
  readonly op: string;
  readonly fn: Unary;
  readonly tolerance: Tolerance;
  /** Standard deviation of the random values. */
  readonly scale?: number;
  readonly extra?: readonly number[];
  /** Whether the gradient row uses only positive values. */
  readonly positive?: boolean;
  readonly differentiable?: boolean;
}

const unaryRows: readonly UnaryRow[] = [
  { op: "absolute", fn: absolute, tolerance: exact, differentiable: true },
  { op: "ceil", fn: ceil, tolerance: exact },
  {
    op: "cos",
    fn: cos,
    tolerance: { absolute: 1e-7, relative: 0 },
    extra: [1e3, -31415.926, 3e6, 1e9, -7e20, 3.4e38],
    scale: 10,
    differentiable: true,
  },
  { op: "erf", fn: erf, tolerance: elementary, differentiable: true },
  {
    op: "exp",
    fn: exp,
    tolerance: { absolute: 3e-45, relative: 2e-7 },
    scale: 10,
    extra: [-103.9, -120, -1000, 1000, 88.7],
    differentiable: true,
  },
  { op: "floor", fn: floor, tolerance: exact },
  { op: "gelu", fn: gelu, tolerance: { absolute: 4e-7, relative: 4e-7 }, differentiable: true },
  {
    op: "gelu",
    fn: (x) => gelu(x, { approximate: "tanh" }),
    tolerance: { absolute: 6e-7, relative: 4e-7 },
    differentiable: true,
  },
  { op: "is-finite", fn: isFinite, tolerance: exact },
  {
    op: "log",
    fn: log,
    tolerance: elementary,
    extra: [3e38, 1.0000001, 0.9999999],
    scale: 100,
    positive: true,
    differentiable: true,
  },
  { op: "negate", fn: negate, tolerance: exact, differentiable: true },
  { op: "relu", fn: relu, tolerance: exact, differentiable: true },
  { op: "round", fn: round, tolerance: exact, extra: [8388607.5, 0.49999997, -3.5] },
  { op: "rsqrt", fn: rsqrt, tolerance: elementary, positive: true, differentiable: true },
  { op: "sigmoid", fn: sigmoid, tolerance: elementary, scale: 10, extra: [-100, 100], differentiable: true },
  { op: "sign", fn: sign, tolerance: exact },
  { op: "silu", fn: silu, tolerance: elementary, scale: 10, differentiable: true },
  {
    op: "sin",
    fn: sin,
    tolerance: { absolute: 1e-7, relative: 0 },
    extra: [1e3, -31415.926, 3e6, 1e9, -7e20, 3.4e38],
    scale: 10,
    differentiable: true,
  },
  { op: "softplus", fn: softplus, tolerance: elementary, scale: 10, extra: [-100, 100], differentiable: true },
  { op: "sqrt", fn: sqrt, tolerance: rounded, positive: true, differentiable: true },
  { op: "stop-gradient", fn: stopGradient, tolerance: exact },
  { op: "tanh", fn: tanh, tolerance: elementary, scale: 3, differentiable: true },
];

const unaryCases = unaryRows.flatMap(
  ({ op, fn, tolerance, scale = 1, extra = [], positive = false, differentiable = false }): ConformanceCase[] => [
    ...smallShapes.map((shape) => ({
      op,
      name: `shape [${shape.join()}]`,
      fn,
      inputs: [uniformArray(shape, 0.1, 2, 5)],
      tolerance,
    })),
    { op, name: "adversarial values", fn, inputs: [adversarial(scale, extra)], tolerance },
    ...(differentiable
      ? [
          {
            op,
            name: "gradient",
            fn,
            inputs: [positive ? uniformArray([3, 5], 0.3, 4, 7) : normalArray([3, 5], 7)],
            gradient: [0],
            tolerance,
          },
        ]
      : []),
  ],
);

const broadcasts: readonly (readonly [a: Shape, b: Shape])[] = [
  [[], []],
  [[0, 3], [3]],
  [[7], [7]],
  [[5, 7], [7]],
  [
    [5, 7],
    [5, 1],
  ],
  [
    [5, 1],
    [1, 7],
  ],
  [[3, 300], [300]],
  [
    [3, 300],
    [3, 1],
  ],
  [[300, 3], [3]],
  [
    [2, 3, 4, 5],
    [3, 1, 5],
  ],
  [[1030], []],
  [[], [1030]],
];

interface BinaryRow {
  readonly op: string;
  readonly fn: Binary;
  readonly dtypes: readonly DType[];
  readonly tolerance: Tolerance;
  readonly differentiable?: boolean;
}

const binaryRows: readonly BinaryRow[] = [
  { op: "add", fn: add, dtypes: ["f32", "i32", "u32"], tolerance: rounded, differentiable: true },
  { op: "subtract", fn: subtract, dtypes: ["f32", "i32", "u32"], tolerance: rounded, differentiable: true },
  { op: "multiply", fn: multiply, dtypes: ["f32", "i32", "u32"], tolerance: rounded, differentiable: true },
  { op: "divide", fn: divide, dtypes: ["f32", "i32", "u32"], tolerance: rounded, differentiable: true },
  { op: "maximum", fn: maximum, dtypes: ["f32", "i32", "u32"], tolerance: exact, differentiable: true },
  { op: "minimum", fn: minimum, dtypes: ["f32", "i32", "u32"], tolerance: exact, differentiable: true },
  ...(
    [
      ["equal", equal],
      ["not-equal", notEqual],
      ["less", less],
      ["less-equal", lessEqual],
      ["greater", greater],
      ["greater-equal", greaterEqual],
    ] as const
  ).map(([op, fn]): BinaryRow => ({ op, fn, dtypes: ["f32", "i32", "u32", "u8", "bool"], tolerance: exact })),
  ...(
    [
      ["logical-and", logicalAnd],
      ["logical-or", logicalOr],
      ["logical-xor", logicalXor],
    ] as const
  ).map(([op, fn]): BinaryRow => ({ op, fn, dtypes: ["bool"], tolerance: exact })),
  ...(
    [
      ["bitwise-and", bitwiseAnd],
      ["bitwise-or", bitwiseOr],
      ["bitwise-xor", bitwiseXor],
    ] as const
  ).map(([op, fn]): BinaryRow => ({ op, fn, dtypes: ["i32", "u32"], tolerance: exact })),
];

/**
 * Edge values by dtype: ends of the range, zero, NaN and infinities. Binary operators are tested on all pairs of these
 * values.
 */
const edges: { readonly [D in DType]: readonly number[] } = {
  f32: [0, -0, 1, -1, 1.5, -2.25, 3e4, -1e-30, Infinity, -Infinity, NaN],
  f16: [0, -0, 1, -1.5, 65504, 2 ** -24, 2 ** -14, -Infinity, Infinity, NaN],
  bf16: [0, -0, 1, -1.5, 3e38, 1e-40, -Infinity, Infinity, NaN],
  i32: [0, 1, -1, 2, -7, 2 ** 31 - 1, -(2 ** 31), 46341],
  u32: [0, 1, 2, 7, 2 ** 32 - 1, 2 ** 31, 65537],
  u8: [0, 1, 7, 128, 255],
  bool: [0, 1],
};

const outer = (dtype: DType): readonly [NdArray, NdArray] => {
  const values = edges[dtype];
  const pairs = values.flatMap((a) => values.map((b) => [a, b] as const));
  return [
    NdArray.from(
      pairs.map(([a]) => a),
      undefined,
      dtype,
    ),
    NdArray.from(
      pairs.map(([, b]) => b),
      undefined,
      dtype,
    ),
  ];
};

const binaryCases = binaryRows.flatMap(({ op, fn, dtypes: own, tolerance, differentiable = false }) => [
  ...own.flatMap((dtype): ConformanceCase[] => [
    ...broadcasts.map(([a, b]) => ({
      op,
      name: `[${a.join()}] and [${b.join()}], ${dtype}`,
      fn: fn as ConformanceCase["fn"],
      inputs: [normalArray(a, 11, dtype), normalArray(b, 12, dtype)],
      tolerance,
    })),
    { op, name: `edges, ${dtype}`, fn: fn as ConformanceCase["fn"], inputs: outer(dtype), tolerance },
  ]),
  ...(differentiable
    ? broadcasts.slice(2, 6).map(
        ([a, b]): ConformanceCase => ({
          op,
          name: `gradient, [${a.join()}] and [${b.join()}]`,
          fn: fn as ConformanceCase["fn"],
          inputs: [normalArray(a, 13), uniformArray(b, 0.5, 2, 14)],
          gradient: [0, 1],
          tolerance,
        }),
      )
    : []),
]);

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

/** Values between and beyond the ranges of the integer dtypes, and at or near rounding ties of the 16-bit floats. */
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
