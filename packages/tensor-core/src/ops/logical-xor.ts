import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./elementwise.ts";

/** `a xor b` on bools. */
export const logicalXorOperator: Operator = elementwise({
  name: "logical-xor",
  arity: 2,
  dtypes: ["bool"],
  scalar: ([a, b]) => a! ^ b!,
});
