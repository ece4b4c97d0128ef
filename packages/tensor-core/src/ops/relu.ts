import { floating } from "../dtype.ts";
import { lessEqual, where } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Rectified linear unit, `max(x, 0)`; NaN stays NaN. The derivative is 0 at 0 and 1 at NaN, as in PyTorch. */
export const reluOperator: Operator = elementwise({
  name: "relu",
  arity: 1,
  dtypes: floating,
  scalar: ([x]) => Math.max(x!, 0),
  vjp: ({ outputs: [y], cotangents: [g] }) => [where(lessEqual(y!, 0), 0, g!)],
});
