import { arithmetic } from "../dtype.ts";
import { equal, greater, multiply, where } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/**
 * Minimum of `a` and `b`; NaN if either operand is NaN. The gradient flows to the smaller operand. If `a` and `b` are
 * equal, each operand receives half of the gradient. If either operand is NaN, each operand receives the whole
 * gradient, as in PyTorch.
 */
export const minimumOperator: Operator = elementwise({
  name: "minimum",
  commutative: true,
  arity: 2,
  dtypes: arithmetic,
  scalar: ([a, b]) => Math.min(a!, b!),
  vjp: ({ inputs: [a, b], cotangents: [g] }) => {
    const shared = where(equal(a!, b!), multiply(g!, 0.5), g!);
    return [where(greater(a!, b!), 0, shared), where(greater(b!, a!), 0, shared)];
  },
});
