import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Bitwise OR of integers. */
export const bitwiseOrOperator: Operator = elementwise({
  name: "bitwise-or",
  arity: 2,
  dtypes: ["i32", "u32"],
  scalar: ([a, b]) => a! | b!,
});
