import { floating } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Smallest integer not below x. No gradient flows. */
export const ceilOperator: Operator = elementwise({
  name: "ceil",
  arity: 1,
  dtypes: floating,
  scalar: ([x]) => Math.ceil(x!),
  vjp: () => [undefined],
});
