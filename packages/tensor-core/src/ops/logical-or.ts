import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./elementwise.ts";

/** `a or b` on bools. */
export const logicalOrOperator: Operator = elementwise({
  name: "logical-or",
  arity: 2,
  dtypes: ["bool"],
  scalar: ([a, b]) => a! | b!,
});
