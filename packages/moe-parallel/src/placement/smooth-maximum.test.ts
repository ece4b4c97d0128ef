import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultGamma, smoothMaximum } from "./smooth-maximum.ts";

const values = fc.array(fc.oneof(fc.nat(5), fc.nat(1e9)), { maxLength: 20 });

test("is between the maximum and n^(1/γ) times the maximum, and 0 for no values", () => {
  fc.assert(
    fc.property(values, fc.integer({ min: 1, max: 40 }), (counts, gamma) => {
      const largest = Math.max(0, ...counts);
      const smooth = smoothMaximum(counts, gamma);
      expect(smooth).toBeGreaterThanOrEqual(largest);
      expect(smooth).toBeLessThanOrEqual(largest * counts.length ** (1 / gamma) * (1 + 1e-12));
      expect(smoothMaximum(counts, Infinity)).toBe(largest);
    }),
  );
  expect(smoothMaximum([], defaultGamma)).toBe(0);
  expect(smoothMaximum(Int32Array.of(0, 0), defaultGamma)).toBe(0);
});

test("decreases when a value below the maximum decreases, unlike the maximum itself", () => {
  expect(smoothMaximum([100, 70, 100], defaultGamma)).toBeLessThan(smoothMaximum([100, 90, 100], defaultGamma));
  // By hand: 4 · (1 + 1 + 2^-10)^(1/10).
  expect(smoothMaximum([4, 2, 4], defaultGamma)).toBeCloseTo(4 * (2 + 2 ** -10) ** 0.1, 12);
});
