import type { Operator } from "../graph/operator.ts";
import { arithmetic, elementwise } from "./elementwise.ts";

/** `a + b`; integers wrap. */
export const addOperator: Operator = elementwise({
  name: "add",
  arity: 2,
  dtypes: arithmetic,
  scalar: ([a, b]) => a! + b!,
  vjp: ({ cotangents: [g] }) => [g!, g!],
});
