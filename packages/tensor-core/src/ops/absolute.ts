import { multiply, sign } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Absolute value, `|x|`; the smallest i32 is unchanged. The gradient at 0 is 0. */
export const absoluteOperator: Operator = elementwise({
  name: "absolute",
  arity: 1,
  dtypes: ["f32", "i32"],
  scalar: ([x]) => Math.abs(x!),
  vjp: ({ inputs: [x], cotangents: [g] }) => [multiply(g!, sign(x!))],
});
