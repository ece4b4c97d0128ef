import { floating } from "../dtype.ts";
import { add, multiply, sigmoid, subtract } from "../functions/elementwise.ts";
import type { ComposedOperator } from "../graph/operator.ts";
import { composedElementwise } from "./shared/elementwise.ts";

/** Sigmoid linear unit (swish), `x · sigmoid(x)`. */
export const siluOperator: ComposedOperator = composedElementwise({
  name: "silu",
  arity: 1,
  dtypes: floating,
  flops: 16,
  scalar: ([x]) => x! / (1 + Math.exp(-x!)),
  composition: ([x]) => multiply(x!, sigmoid(x!)),
  vjp: ({ inputs: [x], cotangents: [g] }) => {
    // d = s·(1 + x·(1 - s)). s is recomputed, so that only x is saved for the backward pass.
    const s = sigmoid(x!);
    return [multiply(g!, multiply(s, add(1, multiply(x!, subtract(1, s)))))];
  },
});
