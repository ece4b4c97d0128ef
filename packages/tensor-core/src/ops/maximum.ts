import { equal, greater, multiply, where } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { arithmetic, elementwise } from "./elementwise.ts";

/** The greater of `a` and `b`; NaN if either is NaN. Where they tie, each gets half of the gradient. */
export const maximumOperator: Operator = elementwise({
  name: "maximum",
  arity: 2,
  dtypes: arithmetic,
  scalar: ([a, b]) => Math.max(a!, b!),
  vjp: ({ inputs: [a, b], cotangents: [g] }) => {
    const tied = multiply(g!, where(equal(a!, b!), 0.5, 0));
    return [where(greater(a!, b!), g!, tied), where(greater(b!, a!), g!, tied)];
  },
});
