import fc from "fast-check";
import { expect, test } from "vitest";
import { repeatLastDoubling } from "./repeat-last-doubling.ts";

test("the factor from 4 to 8 ranks is repeated for 16 ranks, and again for 32", () => {
  const measured = [
    { ranks: 8, stepSeconds: 0.3 },
    { ranks: 4, stepSeconds: 0.2 },
    { ranks: 2, stepSeconds: 0.1 },
  ];
  expect(repeatLastDoubling(measured, 16)).toBeCloseTo(0.45, 12);
  expect(repeatLastDoubling(measured, 32)).toBeCloseTo(0.675, 12);
  expect(repeatLastDoubling(measured, 8)).toBeCloseTo(0.4, 12);
});

test("a single number of ranks is repeated, and several measurements of it count by their mean", () => {
  const measured = [1, 3].map((stepSeconds) => ({ ranks: 4, stepSeconds }));
  expect(repeatLastDoubling(measured, 64)).toBe(2);
});

test("a power of the ranks is continued from any two numbers of ranks", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 1e-6, max: 1e3, noNaN: true }),
      fc.double({ min: -1, max: 2, noNaN: true }),
      fc.uniqueArray(fc.integer({ min: 1, max: 1000 }), { minLength: 3, maxLength: 6 }),
      (seconds, exponent, sizes) => {
        const steps = sizes.map((ranks) => ({ ranks, stepSeconds: seconds * ranks ** exponent }));
        const largest = Math.max(...sizes);
        const [asked, known] = [steps.find((s) => s.ranks === largest)!, steps.filter((s) => s.ranks < largest)];
        expect(repeatLastDoubling(known, largest) / asked.stepSeconds).toBeCloseTo(1, 6);
      },
    ),
    { seed: 21, numRuns: 100 },
  );
});

test("rejects measurements of as many ranks or more, no measurements, and invalid values", () => {
  expect(() => repeatLastDoubling([{ ranks: 8, stepSeconds: 1 }], 8)).toThrow(
    "a step on 8 ranks cannot be extrapolated from 8 ranks; measure fewer ranks than 8",
  );
  expect(() => repeatLastDoubling([], 8)).toThrow("from no measurement");
  for (const stepSeconds of [0, -1, Number.NaN, Infinity])
    expect(() => repeatLastDoubling([{ ranks: 2, stepSeconds }], 8)).toThrow("is not a measurement");
});
