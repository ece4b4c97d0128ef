import { floating } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Largest integer not above x. No gradient flows. */
export const floorOperator: Operator = elementwise({
  name: "floor",
  arity: 1,
  dtypes: floating,
  scalar: ([x]) => Math.floor(x!),
  vjp: () => [undefined],
});
