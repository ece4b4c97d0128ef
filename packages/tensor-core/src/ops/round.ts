import { floating } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

const roundTiesToEven = (x: number): number => {
  const floor = Math.floor(x);
  const rest = x - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
};

/** Nearest integer to x, ties to even. No gradient flows. */
export const roundOperator: Operator = elementwise({
  name: "round",
  arity: 1,
  dtypes: floating,
  scalar: ([x]) => roundTiesToEven(x!),
  vjp: () => [undefined],
});
