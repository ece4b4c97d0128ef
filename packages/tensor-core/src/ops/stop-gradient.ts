import { dtypes } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./elementwise.ts";

/** The value itself; no gradient flows back. */
export const stopGradientOperator: Operator = {
  ...elementwise({
    name: "stop-gradient",
    arity: 1,
    dtypes: dtypes,
    scalar: ([x]) => x!,
    vjp: () => [undefined],
  }),
  stopsGradient: true,
};
