import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** `a · 2^b`, dropping the bits that leave; `b` counts modulo 32. */
export const shiftLeftOperator: Operator = elementwise({
  name: "shift-left",
  arity: 2,
  dtypes: ["i32", "u32"],
  scalar: ([a, b]) => a! << b!,
});
