import { equal, log, multiply, power, subtract, where } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise, floating } from "./elementwise.ts";

/** `a^b` by the rules of IEEE 754 `pow`. The gradient towards `b` is zero where `a` is zero. */
export const powerOperator: Operator = elementwise({
  name: "power",
  arity: 2,
  dtypes: floating,
  flops: 20,
  scalar: ([a, b]) => a! ** b!,
  vjp: ({ inputs: [a, b], outputs: [result], cotangents: [g] }) => [
    multiply(g!, multiply(b!, power(a!, subtract(b!, 1)))),
    multiply(g!, where(equal(a!, 0), 0, multiply(result!, log(a!)))),
  ],
});
