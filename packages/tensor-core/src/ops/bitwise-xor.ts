import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** `a xor b` bit by bit. */
export const bitwiseXorOperator: Operator = elementwise({
  name: "bitwise-xor",
  arity: 2,
  dtypes: ["i32", "u32"],
  scalar: ([a, b]) => a! ^ b!,
});
