import { floating } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Whether x is neither infinite nor NaN, as bool. */
export const isFiniteOperator: Operator = elementwise({
  name: "is-finite",
  arity: 1,
  dtypes: floating,
  result: () => "bool",
  scalar: ([x]) => (Number.isFinite(x!) ? 1 : 0),
});
