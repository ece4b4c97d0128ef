import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Bitwise exclusive OR of integers. */
export const bitwiseXorOperator: Operator = elementwise({
  name: "bitwise-xor",
  arity: 2,
  dtypes: ["i32", "u32"],
  scalar: ([a, b]) => a! ^ b!,
});
