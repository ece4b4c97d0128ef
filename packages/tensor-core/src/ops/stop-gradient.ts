import { dtypes } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";
import { passThrough } from "./shared/movement-rules.ts";

/** Returns the operand, but blocks the gradient. */
export const stopGradientOperator: Operator = {
  ...elementwise({
    name: "stop-gradient",
    viewOffset: () => 0,
    rewrites: [passThrough],
    arity: 1,
    dtypes: dtypes,
    scalar: ([x]) => x!,
    vjp: () => [undefined],
  }),
  stopsGradient: true,
};
