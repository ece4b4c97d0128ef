import { floating } from "../dtype.ts";
import { equal, log, multiply, power, subtract, where } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/**
 * IEEE 754 `pow`. JavaScript's `**` differs if the base is 1 and the exponent is NaN or infinite, or the base is -1 and
 * the exponent is infinite.
 */
const pow = (a: number, b: number): number => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b);

/**
 * Power `a^b`, as IEEE 754 `pow`. The gradient with respect to `a` is zero if `b` is zero, also for 0⁰. The gradient
 * with respect to `b` is zero if `a` is zero.
 */
export const powerOperator: Operator = elementwise({
  name: "power",
  arity: 2,
  dtypes: floating,
  flops: 20,
  scalar: ([a, b]) => pow(a!, b!),
  vjp: ({ inputs: [a, b], outputs: [result], cotangents: [g] }) => [
    where(equal(b!, 0), 0, multiply(g!, multiply(b!, power(a!, subtract(b!, 1))))),
    multiply(g!, where(equal(a!, 0), 0, multiply(result!, log(a!)))),
  ],
});
