import { absolute, add, divide, exp, multiply, NdArray, sigmoid, tanh, type Tensor } from "@skein/tensor-core";
import { composedElementwise, type ComposedOperator, emitDefined } from "@skein/tensor-core/backend";
import type { ConformanceCase } from "./conformance-case.ts";
import { normalArray } from "./seeded.ts";

/** Hyperbolic cosine. Squares e^(|x|/2), because e^|x| overflows below the largest result. */
const cosh = (x: Tensor): Tensor => {
  const root = exp(multiply(absolute(x), 0.5));
  return add(multiply(multiply(root, 0.5), root), divide(0.5, multiply(root, root)));
};

const sinhOperator: ComposedOperator = composedElementwise({
  name: "sinh",
  arity: 1,
  dtypes: ["f32"],
  flops: 40,
  scalar: ([x]) => Math.sinh(x!),
  // (e^x - e^-x) / 2 would cancel near 0.
  composition: ([x]) => multiply(tanh(x!), cosh(x!)),
  vjp: ({ inputs: [x], cotangents: [g] }) => [multiply(g!, cosh(x!))],
});

/**
 * Hyperbolic sine, defined as a built-in elementwise operator with a composition. No backend has an instruction for the
 * operator, and ONNX export has no emitter, so all of them must use the composition.
 */
export const sinh = (x: Tensor): Tensor => emitDefined(sinhOperator, [x], {})[0]!;

const tolerance = { absolute: 1e-37, relative: 1e-6 };

/** Conformance cases of `sinh` for every backend: several sizes, difficult values, a fused chain, and gradients. */
export const composedOperatorCases: readonly ConformanceCase[] = [
  ...[[], [0], [3], [5, 7]].map((shape) => ({
    op: "sinh",
    name: `shape [${shape.join()}]`,
    fn: (x: Tensor) => sinh(x),
    inputs: [normalArray(shape, 5)],
    tolerance,
  })),
  {
    op: "sinh",
    name: "small, large and special values",
    fn: (x) => sinh(x!),
    inputs: [NdArray.from([0, -0, 1e-40, 1e-30, -1e-8, 1e-3, 0.5, -20, 88.8, 89.4, -89.4, Infinity, -Infinity, NaN])],
    tolerance,
  },
  {
    op: "sinh",
    name: "inside a fused chain, with gradient",
    fn: (x) => add(multiply(sinh(multiply(x!, 0.5)), 2), sigmoid(x!)),
    inputs: [normalArray([33, 7], 6)],
    gradient: [0],
  },
];
