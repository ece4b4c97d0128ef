import fc from "fast-check";
import { expect, test } from "vitest";
import { differenceOf, significant } from "./difference.ts";

test("far apart and calm is no luck; near and wild is", () => {
  const times = (median: number, mad: number) => ({ median, mad, n: 20 });
  expect(differenceOf(times(1, 0.01), times(1.1, 0.01)).probability).toBeLessThan(1e-10);
  expect(differenceOf(times(1, 0.2), times(1.1, 0.2)).probability).toBeGreaterThan(0.3);
  expect(differenceOf(times(1, 0), times(1, 0))).toMatchObject({ relative: 0, probability: 1 });
  expect(differenceOf(times(1, 0), times(0.9, 0)).probability).toBe(0);
  expect(differenceOf(times(2, 0.1), times(1, 0.1)).relative).toBe(-0.5);
});

test("1.96 standard errors are one chance in twenty", () => {
  const mad = 0.1;
  const error = (1.2533 * 1.4826 * mad) / Math.sqrt(25);
  const { probability } = differenceOf({ median: 1, mad, n: 25 }, { median: 1 + 1.959964 * Math.SQRT2 * error, mad, n: 25 });
  expect(probability).toBeCloseTo(0.05, 5);
});

test("Holm's rule: the least probable is asked most", () => {
  expect(significant([0.01, 0.04, 0.03])).toEqual([true, false, false]); // 0.05/3, then 0.05/2
  expect(significant([0.01, 0.02, 0.03])).toEqual([true, true, true]);
  expect(significant([])).toEqual([]);
});

test("it claims no more than without correction, and at least what Bonferroni does; in any order", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 20 }), (probabilities) => {
      const stands = significant(probabilities);
      return probabilities.every((p, i) => (p > 0.05 / probabilities.length || stands[i] === true) && (stands[i] === false || p <= 0.05));
    }),
  );
});
