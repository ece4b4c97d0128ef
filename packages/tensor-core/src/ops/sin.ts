import { floating } from "../dtype.ts";
import { cos, multiply } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Sine, `sin x`, x in radians. */
export const sinOperator: Operator = elementwise({
  name: "sin",
  arity: 1,
  dtypes: floating,
  flops: 15,
  scalar: ([x]) => Math.sin(x!),
  vjp: ({ inputs: [x], cotangents: [g] }) => [multiply(g!, cos(x!))],
});
