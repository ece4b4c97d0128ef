import { floating } from "../dtype.ts";
import { exp, multiply, negate } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { erfOf } from "../special.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Error function, `2/√π ∫₀ˣ e^(-t²) dt`. */
export const erfOperator: Operator = elementwise({
  name: "erf",
  arity: 1,
  dtypes: floating,
  flops: 20,
  scalar: ([x]) => erfOf(x!),
  vjp: ({ inputs: [x], cotangents: [g] }) => [
    multiply(g!, multiply(exp(negate(multiply(x!, x!))), 2 / Math.sqrt(Math.PI))),
  ],
});
