import { describe, expect, test } from "vitest";
import { normalArray, seeded, uniformArray } from "./seeded.ts";

/**
 * Returns the Kolmogorov–Smirnov statistic of a sorted sample: its maximum distance from the uniform distribution on
 * [0, 1).
 */
const distanceFromUniform = (values: readonly number[]): number =>
  Math.max(
    ...values
      .toSorted((a, b) => a - b)
      .map((value, i) => Math.max(value - i / values.length, (i + 1) / values.length - value)),
  );

const numbers = Array.from({ length: 1000 }, (_, i) => i);

/** Threshold exceeded by one in a million samples of 1000: √(−ln(10⁻⁶/2)/2)/√1000. */
const rare = Math.sqrt(-Math.log(1e-6 / 2) / 2) / Math.sqrt(numbers.length);

describe("seeded", () => {
  test("gives equal numbers for equal seeds and different numbers for different seeds", () => {
    const [a, b, c] = [seeded(5), seeded(5), seeded(6)];
    const draws = (next: () => number): number[] => numbers.map(() => next());
    const first = draws(a);
    expect(draws(b)).toEqual(first);
    expect(new Set([...first, ...draws(c)]).size).toBe(2 * numbers.length);
  });

  test("gives uniform numbers for one seed, and uniform first numbers over neighboring seeds", () => {
    const next = seeded(1);
    expect(distanceFromUniform(numbers.map(() => next()))).toBeLessThan(rare);
    const rows = numbers.map((seed) => {
      const draw = seeded(seed);
      return [draw(), draw(), draw()] as const;
    });
    for (const at of [0, 1, 2] as const) expect(distanceFromUniform(rows.map((row) => row[at]))).toBeLessThan(rare);
  });

  test("makes arrays with values of their dtype, within the bounds", () => {
    const integers = uniformArray([300], -2, 3, 4, "i32").toNumbers();
    expect([...new Set(integers)].toSorted((a, b) => a - b)).toEqual([-2, -1, 0, 1, 2]);
    expect(new Set(normalArray([300], 4, "bool").toNumbers())).toEqual(new Set([0, 1]));
    for (const value of normalArray([300], 4, "u8").toNumbers())
      expect(value).toSatisfy((number: number) => number >= 0 && Number.isInteger(number));
  });
});
