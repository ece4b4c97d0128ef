import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Shift left: `a · 2^b` without the bits above 32; `b` is taken modulo 32. */
export const shiftLeftOperator: Operator = elementwise({
  name: "shift-left",
  arity: 2,
  dtypes: ["i32", "u32"],
  scalar: ([a, b]) => a! << b!,
});
