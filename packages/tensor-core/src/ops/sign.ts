import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Sign of x: -1, 0 or 1; NaN stays NaN. No gradient flows. */
export const signOperator: Operator = elementwise({
  name: "sign",
  arity: 1,
  dtypes: ["f32", "i32"],
  scalar: ([x]) => Math.sign(x!),
  vjp: () => [undefined],
});
