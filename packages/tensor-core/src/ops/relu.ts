import { greater, where } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise, floating } from "./shared/elementwise.ts";

/** `max(x, 0)`; NaN stays NaN. The gradient at 0 is 0. */
export const reluOperator: Operator = elementwise({
  name: "relu",
  arity: 1,
  dtypes: floating,
  scalar: ([x]) => Math.max(x!, 0),
  vjp: ({ outputs: [y], cotangents: [g] }) => [where(greater(y!, 0), g!, 0)],
});
