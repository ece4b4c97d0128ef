import type { TimeArithmetic } from "../src/simulation/time-arithmetic.ts";

/** A fraction in lowest terms; the denominator is positive. */
export type Fraction = readonly [numerator: bigint, denominator: bigint];

const greatestCommonDivisor = (a: bigint, b: bigint): bigint => (b === 0n ? a : greatestCommonDivisor(b, a % b));

const reduced = (numerator: bigint, denominator: bigint): Fraction => {
  const divisor = greatestCommonDivisor(numerator < 0n ? -numerator : numerator, denominator);
  return [numerator / divisor, denominator / divisor];
};

export const fraction = (numerator: number, denominator = 1): Fraction =>
  reduced(BigInt(numerator), BigInt(denominator));

/** Exact arithmetic of times. Factors and divisors must be integers. */
export const fractions: TimeArithmetic<Fraction> = {
  zero: fraction(0),
  add: ([a, b], [c, d]) => reduced(a * d + c * b, b * d),
  subtract: ([a, b], [c, d]) => reduced(a * d - c * b, b * d),
  times: ([a, b], factor) => reduced(a * BigInt(factor), b),
  over: ([a, b], divisor) => reduced(a, b * BigInt(divisor)),
  compare: ([a, b], [c, d]) => Number(a * d - c * b),
};
