import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Shift right: `⌊a / 2^b⌋`, arithmetic for i32, logical for u32; `b` is taken modulo 32. */
export const shiftRightOperator: Operator = elementwise({
  name: "shift-right",
  arity: 2,
  dtypes: ["i32", "u32"],
  scalar: ([a, b], _, dtype) => (dtype === "i32" ? a! >> b! : a! >>> b!),
});
