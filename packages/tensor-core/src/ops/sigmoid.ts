import { floating } from "../dtype.ts";
import { multiply, subtract } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Logistic sigmoid, `1 / (1 + e^-x)`. */
export const sigmoidOperator: Operator = elementwise({
  name: "sigmoid",
  arity: 1,
  dtypes: floating,
  flops: 15,
  scalar: ([x]) => 1 / (1 + Math.exp(-x!)),
  vjp: ({ outputs: [y], cotangents: [g] }) => [multiply(g!, multiply(y!, subtract(1, y!)))],
});
