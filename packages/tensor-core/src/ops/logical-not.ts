import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Logical NOT of a bool. */
export const logicalNotOperator: Operator = elementwise({
  name: "logical-not",
  arity: 1,
  dtypes: ["bool"],
  scalar: ([a]) => 1 - a!,
});
