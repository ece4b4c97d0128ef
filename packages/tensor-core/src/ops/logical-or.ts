import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Logical OR of bools. */
export const logicalOrOperator: Operator = elementwise({
  name: "logical-or",
  commutative: true,
  arity: 2,
  dtypes: ["bool"],
  scalar: ([a, b]) => a! | b!,
});
