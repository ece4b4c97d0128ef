import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jitterOf } from "./jitter.ts";

const draws = (count: number, draw: (index: number) => number): number[] =>
  Array.from({ length: count }, (_, index) => draw(index));
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const deviation = (values: readonly number[]): number => {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
};

describe("jitterOf", () => {
  test("factors are a function of seed, rank, step and task, for any order of calls", () => {
    const coordinates = fc.array(fc.tuple(fc.nat(9), fc.nat(3), fc.nat(9)), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(fc.nat(1000), coordinates, (seed, all) => {
        const options = { seed, computeVariation: 0.3, communicationVariation: 0.2 };
        const inOrder = jitterOf(options);
        const forwards = all.map(([rank, step, task]) => inOrder.computeFactor(rank, step, task));
        const backwards = all.toReversed().map(([rank, step, task]) => {
          const fresh = jitterOf(options);
          fresh.communicationFactor(rank + 1, step, task);
          return fresh.computeFactor(rank, step, task);
        });
        expect(backwards.reverse()).toEqual(forwards);
        expect(new Set(forwards).size).toBe(new Set(all.map(String)).size);
        for (const factor of forwards) expect(factor).toBeGreaterThan(0);
      }),
      { numRuns: 20 },
    );
  });

  test("computation and communication, seeds, ranks, steps and tasks have independent factors", () => {
    const { computeFactor, communicationFactor } = jitterOf({
      seed: 1,
      computeVariation: 0.1,
      communicationVariation: 0.1,
    });
    const other = jitterOf({ seed: 2, computeVariation: 0.1 }).computeFactor;
    const all = [
      computeFactor(0, 0, 0),
      communicationFactor(0, 0, 0),
      other(0, 0, 0),
      computeFactor(1, 0, 0),
      computeFactor(0, 1, 0),
      computeFactor(0, 0, 1),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  test.each([0.01, 0.1, 0.5])(
    "the mean is 1 and the coefficient of variation %d, up to what 20,000 draws scatter",
    (variation) => {
      const { computeFactor } = jitterOf({ seed: 7, computeVariation: variation });
      const factors = draws(20_000, (index) => computeFactor(index % 100, 0, Math.floor(index / 100)));
      expect(Math.abs(mean(factors) - 1)).toBeLessThan((5 * variation) / Math.sqrt(20_000));
      expect(deviation(factors) / variation).toBeGreaterThan(0.95);
      expect(deviation(factors) / variation).toBeLessThan(1.05);
      // The logarithm of the factor has a normal distribution: half of the values are above its mean.
      expect(
        factors.filter((factor) => factor < Math.exp(-Math.log1p(variation ** 2) / 2)).length / 20_000,
      ).toBeCloseTo(0.5, 1);
    },
  );

  test("a rank's computations of one step share a factor, independent of other steps and ranks", () => {
    const { computeFactor, communicationFactor, sameOnRanks } = jitterOf({ seed: 7, stepVariation: 0.2 });
    expect(computeFactor(1, 2, 3)).toBe(computeFactor(1, 2, 9));
    expect(new Set([computeFactor(1, 2, 3), computeFactor(2, 2, 3), computeFactor(1, 3, 3)]).size).toBe(3);
    expect([communicationFactor(1, 2, 3), sameOnRanks]).toEqual([1, false]);
    const factors = draws(20_000, (index) => computeFactor(index % 100, Math.floor(index / 100), 0));
    expect(deviation(factors) / 0.2).toBeGreaterThan(0.95);
    expect(deviation(factors) / 0.2).toBeLessThan(1.05);
    // Variation per step is applied in addition to the variation of each task.
    const both = jitterOf({ seed: 7, stepVariation: 0.2, computeVariation: 0.1 }).computeFactor(1, 2, 3);
    expect(both).toBeCloseTo(
      computeFactor(1, 2, 3) * jitterOf({ seed: 7, computeVariation: 0.1 }).computeFactor(1, 2, 3),
      12,
    );
  });

  test("stragglers are slow in all computations, and their share is as given", () => {
    const { rankFactor, computeFactor, communicationFactor, sameOnRanks } = jitterOf({
      seed: 3,
      stragglers: { share: 0.2, factor: 4 },
    });
    const factors = draws(5000, rankFactor);
    expect(new Set(factors)).toEqual(new Set([1, 4]));
    expect(factors.filter((factor) => factor === 4).length / 5000).toBeCloseTo(0.2, 1);
    expect(sameOnRanks).toBe(true);
    const slow = factors.indexOf(4);
    expect([computeFactor(slow, 3, 5), communicationFactor(slow, 3, 5)]).toEqual([4, 1]);
    expect(jitterOf({ seed: 3, computeVariation: 0.1 }).sameOnRanks).toBe(false);
  });

  test("nothing varies by default", () => {
    const { computeFactor, communicationFactor } = jitterOf({ seed: 1 });
    expect([computeFactor(0, 0, 0), communicationFactor(0, 0, 0)]).toEqual([1, 1]);
  });

  test.each([
    ["a variation below 0", { seed: 1, computeVariation: -0.1 }, "computeVariation is -0.1"],
    ["a variation that is none", { seed: 1, communicationVariation: Number.NaN }, "communicationVariation is NaN"],
    ["a step's variation below 0", { seed: 1, stepVariation: -0.1 }, "stepVariation is -0.1"],
    ["a share above 1", { seed: 1, stragglers: { share: 1.5, factor: 2 } }, "share 1.5"],
    ["a factor of 0", { seed: 1, stragglers: { share: 0.5, factor: 0 } }, "factor 0"],
    ["a seed that is none", { seed: 0.5 }, "seed 0.5 is not usable"],
  ])("rejects %s", (_, options, message) => expect(() => jitterOf(options)).toThrow(message));
});
