import { negate } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { arithmetic, elementwise } from "./elementwise.ts";

/** `a - b`; integers wrap. */
export const subtractOperator: Operator = elementwise({
  name: "subtract",
  arity: 2,
  dtypes: arithmetic,
  scalar: ([a, b]) => a! - b!,
  vjp: ({ cotangents: [g] }) => [g!, negate(g!)],
});
