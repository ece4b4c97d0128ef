import { arithmetic } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise, infix } from "./shared/elementwise.ts";
import { neutral } from "./shared/neutral.ts";

/** Sum `a + b`; integers wrap around. */
export const addOperator: Operator = elementwise({
  name: "add",
  formula: infix("+"),
  adds: true,
  commutative: true,
  rewrites: [neutral("either", 0)],
  arity: 2,
  dtypes: arithmetic,
  scalar: ([a, b]) => a! + b!,
  vjp: ({ cotangents: [g] }) => [g!, g!],
});
