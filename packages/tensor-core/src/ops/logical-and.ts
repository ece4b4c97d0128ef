import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./elementwise.ts";

/** `a and b` on bools. */
export const logicalAndOperator: Operator = elementwise({
  name: "logical-and",
  arity: 2,
  dtypes: ["bool"],
  scalar: ([a, b]) => a! & b!,
});
