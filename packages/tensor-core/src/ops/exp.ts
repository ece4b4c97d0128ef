import { floating } from "../dtype.ts";
import { multiply } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Exponential function, `e^x`. */
export const expOperator: Operator = elementwise({
  name: "exp",
  arity: 1,
  dtypes: floating,
  flops: 10,
  scalar: ([x]) => Math.exp(x!),
  vjp: ({ outputs: [y], cotangents: [g] }) => [multiply(g!, y!)],
});
