import { equal, less, multiply, where } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { arithmetic, elementwise } from "./shared/elementwise.ts";

/** The lesser of `a` and `b`; NaN if either is NaN. Where they tie, each gets half of the gradient. */
export const minimumOperator: Operator = elementwise({
  name: "minimum",
  commutative: true,
  arity: 2,
  dtypes: arithmetic,
  scalar: ([a, b]) => Math.min(a!, b!),
  vjp: ({ inputs: [a, b], cotangents: [g] }) => {
    const tied = multiply(g!, where(equal(a!, b!), 0.5, 0));
    return [where(less(a!, b!), g!, tied), where(less(b!, a!), g!, tied)];
  },
});
