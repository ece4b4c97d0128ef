import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Bitwise AND of integers. */
export const bitwiseAndOperator: Operator = elementwise({
  name: "bitwise-and",
  arity: 2,
  dtypes: ["i32", "u32"],
  scalar: ([a, b]) => a! & b!,
});
