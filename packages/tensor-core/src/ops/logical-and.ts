import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Logical AND of bools. */
export const logicalAndOperator: Operator = elementwise({
  name: "logical-and",
  commutative: true,
  arity: 2,
  dtypes: ["bool"],
  scalar: ([a, b]) => a! & b!,
});
