import fc from "fast-check";
import { threefry2x32 } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { LossCurve, suggestRate } from "./suggest-rate.ts";

/** Simulates a range test on the loss ½ Σ λᵢ xᵢ²: gradient descent with increasing learning rates. */
const onQuadratic = (eigenvalues: readonly number[], from: number, to: number, steps: number): LossCurve => {
  let x = eigenvalues.map((value) => 1 / Math.sqrt(value)); // all directions have the same share of the loss
  const curve = new LossCurve();
  for (let step = 0; step < steps; step++) {
    const rate = from * (to / from) ** (step / (steps - 1));
    const loss = eigenvalues.reduce((sum, value, i) => sum + (value * x[i]! ** 2) / 2, 0);
    if (curve.add({ rate, loss })) break;
    x = x.map((value, i) => value * (1 - rate * eigenvalues[i]!));
  }
  return curve;
};

describe("the suggested rate", () => {
  const exponent = fc.double({ min: -2, max: 2, noNaN: true });
  const numSteps = fc.integer({ min: 60, max: 400 });

  test("is below 2/λ, above which descent diverges, and useful, with equal curvature in all directions", () => {
    fc.assert(
      fc.property(exponent, fc.integer({ min: 1, max: 8 }), numSteps, (own, count, steps) => {
        const { rate } = suggestRate(onQuadratic(Array<number>(count).fill(10 ** own), 1e-6, 1e3, steps).points)!;
        const bound = 2 / 10 ** own;
        expect(rate).toBeLessThan(bound);
        expect(rate).toBeGreaterThan(bound / 100);
      }),
      { numRuns: 200 },
    );
  });

  test("is below 4 · 2/λmax on any quadratic: one steep direction among flat ones shows late", () => {
    fc.assert(
      fc.property(fc.array(exponent, { minLength: 1, maxLength: 8 }), numSteps, (exponents, steps) => {
        const values = exponents.map((own) => 10 ** own);
        const { rate } = suggestRate(onQuadratic(values, 1e-6, 1e3, steps).points)!;
        const bound = 2 / Math.max(...values);
        expect(rate).toBeLessThan(4 * bound);
        expect(rate).toBeGreaterThan(bound / 1e4);
      }),
      { numRuns: 300 },
    );
  });

  test("is a tenth of the rate with the lowest loss if the fall is steepest just before it", () => {
    const curve = new LossCurve();
    for (let i = 0; i < 30; i++) curve.add({ rate: 10 ** (i / 10 - 3), loss: i < 29 ? 2 - (i / 29) ** 6 : 2 });
    const { rate, steepest, least } = suggestRate(curve.points)!;
    expect(steepest).toBeGreaterThan(least / 10);
    expect(rate).toBe(least / 10);
  });

  test("does not depend on the unit of the loss", () => {
    const curve = onQuadratic([1, 10], 1e-6, 1, 100).points;
    const scaled = curve.map(({ rate, loss }) => ({ rate, loss: 8 * loss }));
    expect(suggestRate(scaled)).toEqual(suggestRate(curve));
  });

  test("is undefined if the loss has not decreased, or there are too few steps", () => {
    const rising = new LossCurve();
    for (let i = 0; i < 20; i++) rising.add({ rate: 10 ** i, loss: 1 + i / 20 });
    expect(suggestRate(rising.points)).toBeUndefined();
    expect(suggestRate(onQuadratic([1], 1e-3, 1, 9).points)).toBeUndefined();
    const draw = (seed: number, at: number): number => threefry2x32([seed, 1], [at, 0])[0] / 2 ** 32;
    let found = 0;
    for (let seed = 0; seed < 200; seed++)
      if (suggestRate(Array.from({ length: 100 }, (_, i) => ({ rate: 1.1 ** i, loss: 2 + draw(seed, i) })))) found++;
    expect(found).toBeLessThan(10); // the losses are noise, and do not decrease
  });
});

test("a test ends at a loss that is not finite, or a smoothed loss of four times the minimum", () => {
  const curve = new LossCurve();
  expect(curve.add({ rate: 1, loss: 1 })).toBe(false);
  expect(curve.add({ rate: 2, loss: 4 })).toBe(false); // the smoothed loss is below four times the minimum
  expect(curve.add({ rate: 3, loss: 40 })).toBe(true);
  expect(curve.add({ rate: 4, loss: Number.NaN })).toBe(true);
  expect(curve.points.map(({ rate }) => rate)).toEqual([1, 2, 3]);
});
