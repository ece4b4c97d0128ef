import { arithmetic } from "../dtype.ts";
import { divide, multiply, negate } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise, infix } from "./shared/elementwise.ts";
import { neutral } from "./shared/neutral.ts";

/** Quotient `a / b`; integer division truncates toward zero, and integer division by 0 gives 0. */
export const divideOperator: Operator = elementwise({
  name: "divide",
  formula: infix("/"),
  rewrites: [neutral("right", 1)],
  arity: 2,
  dtypes: arithmetic,
  flops: 4,
  scalar: ([a, b], _, dtype) => (dtype === "f32" ? a! / b! : b === 0 ? 0 : Math.trunc(a! / b!)),
  vjp: ({ inputs: [, b], outputs: [quotient], cotangents: [g] }) => {
    const towardsA = divide(g!, b!);
    return [towardsA, negate(multiply(towardsA, quotient!))];
  },
});
