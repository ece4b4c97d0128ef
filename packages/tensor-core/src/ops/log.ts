import { floating } from "../dtype.ts";
import { divide } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Natural logarithm; -Infinity at 0, NaN for x < 0. */
export const logOperator: Operator = elementwise({
  name: "log",
  arity: 1,
  dtypes: floating,
  flops: 10,
  scalar: ([x]) => Math.log(x!),
  vjp: ({ inputs: [x], cotangents: [g] }) => [divide(g!, x!)],
});
