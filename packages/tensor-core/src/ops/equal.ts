import { ordered } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise, infix } from "./shared/elementwise.ts";

/** `a == b` as bool; a comparison with NaN is false. */
export const equalOperator: Operator = elementwise({
  name: "equal",
  formula: infix("=="),
  commutative: true,
  arity: 2,
  dtypes: ordered,
  result: () => "bool",
  scalar: ([a, b]) => (a! === b! ? 1 : 0),
});
