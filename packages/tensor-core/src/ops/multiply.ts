import { arithmetic } from "../dtype.ts";
import { multiply } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise, infix } from "./shared/elementwise.ts";
import { neutral } from "./shared/neutral.ts";

/** Product `a · b`; integers wrap around. */
export const multiplyOperator: Operator = elementwise({
  name: "multiply",
  formula: infix("*"),
  commutative: true,
  rewrites: [neutral("either", 1)],
  arity: 2,
  dtypes: arithmetic,
  scalar: ([a, b], _, dtype) =>
    dtype === "f32" ? a! * b! : dtype === "i32" ? Math.imul(a!, b!) : Math.imul(a!, b!) >>> 0,
  vjp: ({ inputs: [a, b], cotangents: [g] }) => [multiply(g!, b!), multiply(g!, a!)],
});
