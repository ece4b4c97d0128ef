import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Logical exclusive OR of bools. */
export const logicalXorOperator: Operator = elementwise({
  name: "logical-xor",
  commutative: true,
  arity: 2,
  dtypes: ["bool"],
  scalar: ([a, b]) => a! ^ b!,
});
