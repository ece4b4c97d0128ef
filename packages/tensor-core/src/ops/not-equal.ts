import { ordered } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise, infix } from "./shared/elementwise.ts";

/** `a ≠ b` as bool; a comparison with NaN is true. */
export const notEqualOperator: Operator = elementwise({
  name: "not-equal",
  formula: infix("!="),
  commutative: true,
  arity: 2,
  dtypes: ordered,
  result: () => "bool",
  scalar: ([a, b]) => (a! !== b! ? 1 : 0),
});
