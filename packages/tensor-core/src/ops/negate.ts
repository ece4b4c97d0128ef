import { negate } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { arithmetic, elementwise } from "./elementwise.ts";

/** `-x`; integers wrap. */
export const negateOperator: Operator = elementwise({
  name: "negate",
  arity: 1,
  dtypes: arithmetic,
  scalar: ([x]) => -x!,
  vjp: ({ cotangents: [g] }) => [negate(g!)],
});
