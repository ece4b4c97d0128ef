import { floating } from "../dtype.ts";
import { multiply, sigmoid } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Softplus, `log(1 + e^x)`. */
export const softplusOperator: Operator = elementwise({
  name: "softplus",
  arity: 1,
  dtypes: floating,
  flops: 20,
  scalar: ([x]) => Math.max(x!, 0) + Math.log1p(Math.exp(-Math.abs(x!))),
  vjp: ({ inputs: [x], cotangents: [g] }) => [multiply(g!, sigmoid(x!))],
});
