import { floating } from "../dtype.ts";
import { add, erf, exp, multiply, subtract, tanh } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { erfOf } from "../special.ts";
import { elementwise } from "./shared/elementwise.ts";

const slope = Math.sqrt(2 / Math.PI);
const cubic = 0.044715;

export type GeluParams = { readonly approximate: boolean };

/**
 * Gaussian error linear unit, `x · Φ(x)`, where Φ is the standard normal distribution function. With `approximate`,
 * `x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
 * Source: Hendrycks and Gimpel, arXiv:1606.08415.
 */
export const geluOperator: Operator = elementwise<GeluParams>({
  name: "gelu",
  arity: 1,
  dtypes: floating,
  flops: 24,
  scalar: ([x], { approximate }) =>
    approximate
      ? 0.5 * x! * (1 + Math.tanh(slope * (x! + cubic * x! ** 3)))
      : 0.5 * x! * (1 + erfOf(x! * Math.SQRT1_2)),
  vjp: ({ inputs: [x], cotangents: [g], params: { approximate } }) => {
    const square = multiply(x!, x!);
    if (approximate) {
      const t = tanh(multiply(multiply(slope, x!), add(1, multiply(cubic, square))));
      const inner = multiply(slope, add(1, multiply(3 * cubic, square)));
      return [multiply(g!, multiply(0.5, add(add(1, t), multiply(multiply(x!, subtract(1, multiply(t, t))), inner))))];
    }
    const distribution = multiply(0.5, add(1, erf(multiply(x!, Math.SQRT1_2))));
    const density = multiply(exp(multiply(square, -0.5)), 1 / Math.sqrt(2 * Math.PI));
    return [multiply(g!, add(distribution, multiply(x!, density)))];
  },
});
