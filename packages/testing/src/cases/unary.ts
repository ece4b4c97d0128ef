import {
  absolute,
  ceil,
  cos,
  erf,
  exp,
  floor,
  gelu,
  isFinite,
  log,
  negate,
  relu,
  round,
  rsqrt,
  type Shape,
  sigmoid,
  sign,
  silu,
  sin,
  softplus,
  sqrt,
  stopGradient,
  tanh,
  type Tensor,
} from "@skein/tensor-core";
import type { ElementwiseName } from "@skein/tensor-core/backend";
import type { Tolerance } from "../closeness.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";
import type { BinaryName } from "./binary.ts";
import { adversarial, elementary, exact, rounded } from "./elementwise-values.ts";

type Unary = (x: Tensor) => Tensor;

const smallShapes: readonly Shape[] = [[], [0], [1], [3], [4, 1], [5, 7]];

interface UnaryRow {
  readonly fn: Unary;
  readonly tolerance: Tolerance;
  /** Standard deviation of the random values. */
  readonly scale?: number;
  readonly extra?: readonly number[];
  /** Whether the gradient is checked only at positive operands. */
  readonly positive?: boolean;
  readonly differentiable?: boolean;
}

/** Elementwise operators whose conformance cases are in `elementwise.ts`. */
type OtherName = "bitcast" | "cast" | "logical-not" | "power" | "shift-left" | "shift-right" | "where";

/** Conformance cases of all other unary elementwise operators. The type requires an entry for each operator. */
const unaryRows: { readonly [op in Exclude<ElementwiseName, BinaryName | OtherName>]: readonly UnaryRow[] } = {
  absolute: [{ fn: absolute, tolerance: exact, differentiable: true }],
  ceil: [{ fn: ceil, tolerance: exact }],
  cos: [
    {
      fn: cos,
      tolerance: { absolute: 1e-7, relative: 0 },
      extra: [1e3, -31415.926, 3e6, 1e9, -7e20, 3.4e38],
      scale: 10,
      differentiable: true,
    },
  ],
  erf: [{ fn: erf, tolerance: elementary, differentiable: true }],
  exp: [
    {
      fn: exp,
      tolerance: { absolute: 3e-45, relative: 2e-7 },
      scale: 10,
      extra: [-103.9, -120, -1000, 1000, 88.7],
      differentiable: true,
    },
  ],
  floor: [{ fn: floor, tolerance: exact }],
  gelu: [
    { fn: gelu, tolerance: { absolute: 4e-7, relative: 4e-7 }, differentiable: true },
    {
      fn: (x) => gelu(x, { approximate: "tanh" }),
      tolerance: { absolute: 6e-7, relative: 4e-7 },
      differentiable: true,
    },
  ],
  "is-finite": [{ fn: isFinite, tolerance: exact }],
  log: [
    {
      fn: log,
      tolerance: elementary,
      extra: [3e38, 1.0000001, 0.9999999],
      scale: 100,
      positive: true,
      differentiable: true,
    },
  ],
  negate: [{ fn: negate, tolerance: exact, differentiable: true }],
  relu: [{ fn: relu, tolerance: exact, differentiable: true }],
  round: [{ fn: round, tolerance: exact, extra: [8388607.5, 0.49999997, -3.5] }],
  rsqrt: [{ fn: rsqrt, tolerance: elementary, positive: true, differentiable: true }],
  sigmoid: [{ fn: sigmoid, tolerance: elementary, scale: 10, extra: [-100, 100], differentiable: true }],
  sign: [{ fn: sign, tolerance: exact }],
  silu: [{ fn: silu, tolerance: elementary, scale: 10, differentiable: true }],
  sin: [
    {
      fn: sin,
      tolerance: { absolute: 1e-7, relative: 0 },
      extra: [1e3, -31415.926, 3e6, 1e9, -7e20, 3.4e38],
      scale: 10,
      differentiable: true,
    },
  ],
  softplus: [{ fn: softplus, tolerance: elementary, scale: 10, extra: [-100, 100], differentiable: true }],
  sqrt: [{ fn: sqrt, tolerance: rounded, positive: true, differentiable: true }],
  "stop-gradient": [{ fn: stopGradient, tolerance: exact }],
  tanh: [{ fn: tanh, tolerance: elementary, scale: 3, differentiable: true }],
};

const unaryCasesOf = (
  op: string,
  { fn, tolerance, scale = 1, extra = [], positive = false, differentiable = false }: UnaryRow,
): readonly ConformanceCase[] => [
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
];

export const unaryCases: readonly ConformanceCase[] = Object.entries(unaryRows).flatMap(([op, rows]) =>
  rows.flatMap((row) => unaryCasesOf(op, row)),
);
