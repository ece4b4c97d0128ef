import { floating } from "../dtype.ts";
import { multiply, negate, sin } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Cosine, `cos x`, x in radians. */
export const cosOperator: Operator = elementwise({
  name: "cos",
  arity: 1,
  dtypes: floating,
  flops: 15,
  scalar: ([x]) => Math.cos(x!),
  vjp: ({ inputs: [x], cotangents: [g] }) => [negate(multiply(g!, sin(x!)))],
});
