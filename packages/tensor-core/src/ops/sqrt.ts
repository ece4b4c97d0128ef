import { floating } from "../dtype.ts";
import { divide, multiply } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Square root, `√x`; NaN for x < 0. */
export const sqrtOperator: Operator = elementwise({
  name: "sqrt",
  arity: 1,
  dtypes: floating,
  flops: 4,
  scalar: ([x]) => Math.sqrt(x!),
  vjp: ({ outputs: [y], cotangents: [g] }) => [divide(multiply(g!, 0.5), y!)],
});
