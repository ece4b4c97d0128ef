import fc from "fast-check";
import { expect, test } from "vitest";
import { leadingDigit } from "./leading-digit.ts";

test("truncates a positive number to its first digit", () => {
  expect([0.00097, 0.000999999, 1, 2.9999, 10, 734].map(leadingDigit)).toEqual([0.0009, 0.0009, 1, 2, 10, 700]);
  fc.assert(
    fc.property(fc.double({ min: 1e-9, max: 1e9, noNaN: true }), (value) => {
      expect(leadingDigit(value)).toBeLessThanOrEqual(value);
      expect(leadingDigit(value)).toBeGreaterThan(value / 2);
      expect(leadingDigit(leadingDigit(value))).toBe(leadingDigit(value));
    }),
  );
});
