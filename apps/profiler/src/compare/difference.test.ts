import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { timesOf } from "../profile/times.ts";
import { differenceOf, significant } from "./difference.ts";

test("medians far apart with little noise differ; close ones with much noise do not; a single sample gives no result", () => {
  const times = (median: number, mad: number, n = 20) => ({ median, mad, n });
  expect(differenceOf(times(1, 0.01), times(1.1, 0.01)).probability).toBeLessThan(1e-6);
  expect(differenceOf(times(1, 0.2), times(1.1, 0.2)).probability).toBeGreaterThan(0.3);
  expect(differenceOf(times(1, 0), times(1, 0))).toMatchObject({ relative: 0, probability: 1 });
  expect(differenceOf(times(1, 0), times(0.9, 0)).probability).toBe(0);
  expect(differenceOf(times(2, 0.1), times(1, 0.1)).relative).toBe(-0.5);
  expect(differenceOf(times(1, 0, 1), times(2, 0.1)).probability).toBe(1);
});

test("with many samples, 1.97 standard errors have a probability of 5 %; with a smaller effective number, more", () => {
  const mad = 0.1;
  const error = (1.2533 * 1.4826 * mad) / Math.sqrt(1000);
  const [one, other] = [1, 1 + 1.9719 * Math.SQRT2 * error].map((median) => ({ median, mad, n: 1000 }));
  expect(differenceOf(one!, other!).probability).toBeCloseTo(0.05, 5);
  expect(differenceOf(one!, { ...other!, effectiveN: 250 }).probability).toBeGreaterThan(0.15);
});

describe("two samples of one distribution", () => {
  let state = 7;
  const uniform = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  const gauss = (): number => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  /**
   * Returns simulated step times, in which each step is correlated with the previous step, and some steps contain a
   * pause.
   */
  const series = (n: number, likeness: number, pauses: number): number[] => {
    let deviation = gauss();
    return Array.from({ length: n }, () => {
      deviation = likeness * deviation + Math.sqrt(1 - likeness ** 2) * gauss();
      return 100 + deviation + (uniform() < pauses ? 20 * uniform() : 0);
    });
  };
  const called = (runs: number, pair: () => readonly [readonly number[], readonly number[]]): number =>
    Array.from({ length: runs }, pair).filter(([a, b]) => differenceOf(timesOf(a), timesOf(b)).probability <= 0.05)
      .length / runs;

  test.each([
    [10, 0, 0],
    [20, 0, 0.1],
    [20, 0.6, 0],
    [40, 0.6, 0.1],
  ])(
    "of %d steps that are alike by %d, with %d pauses, are called different in at most 5 of 100 cases",
    (n, likeness, pauses) => {
      // 400 cases with a probability of 0.05 each: the standard deviation of the fraction is 1.1 %.
      expect(called(400, () => [series(n, likeness, pauses), series(n, likeness, pauses)])).toBeLessThan(
        0.05 + 1.5 * 0.011,
      );
    },
  );

  test("differ if they are two of their standard deviations apart", () => {
    expect(called(200, () => [series(20, 0, 0), series(20, 0, 0).map((value) => value + 2)])).toBeGreaterThan(0.85);
  });
});

test("Holm's rule compares the smallest p-value with the strictest bound", () => {
  expect(significant([0.01, 0.04, 0.03])).toEqual([true, false, false]); // thresholds: 0.05/3, then 0.05/2
  expect(significant([0.01, 0.02, 0.03])).toEqual([true, true, true]);
  expect(significant([])).toEqual([]);
});

test("Holm's rule claims no more than without correction, and at least as much as Bonferroni, in any order", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 20 }),
      (probabilities) => {
        const stands = significant(probabilities);
        return probabilities.every(
          (p, i) => (p > 0.05 / probabilities.length || stands[i] === true) && (stands[i] === false || p <= 0.05),
        );
      },
    ),
  );
});
