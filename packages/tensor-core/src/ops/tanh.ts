import { floating } from "../dtype.ts";
import { multiply, subtract } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Hyperbolic tangent, `tanh x`. */
export const tanhOperator: Operator = elementwise({
  name: "tanh",
  arity: 1,
  dtypes: floating,
  flops: 15,
  scalar: ([x]) => Math.tanh(x!),
  vjp: ({ outputs: [y], cotangents: [g] }) => [multiply(g!, subtract(1, multiply(y!, y!)))],
});
