import { floating } from "../dtype.ts";
import { multiply } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Reciprocal square root, `1 / √x`; Infinity at 0, NaN for x < 0. */
export const rsqrtOperator: Operator = elementwise({
  name: "rsqrt",
  arity: 1,
  dtypes: floating,
  flops: 8,
  scalar: ([x]) => 1 / Math.sqrt(x!),
  vjp: ({ outputs: [y], cotangents: [g] }) => [multiply(multiply(g!, -0.5), multiply(y!, multiply(y!, y!)))],
});
