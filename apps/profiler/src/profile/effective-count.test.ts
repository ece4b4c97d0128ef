import fc from "fast-check";
import { expect, test } from "vitest";
import { effectiveCount } from "./effective-count.ts";

test("alternating values have the full effective count, drifting values a small one", () => {
  expect(effectiveCount(Array.from({ length: 40 }, (_, i) => i % 2))).toBe(40);
  expect(effectiveCount(Array.from({ length: 40 }, (_, i) => i))).toBeLessThan(2);
  expect(effectiveCount(Array.from({ length: 40 }, () => 3))).toBeGreaterThan(35);
  expect(effectiveCount(Array.from({ length: 40 }, (_, i) => [1, 1, 2, 1, 3, 2, 1][(i * 5) % 7]!))).toBeGreaterThan(20);
  // Values in a slow half and a fast half contain hardly more information than two values.
  expect(effectiveCount(Array.from({ length: 40 }, (_, i) => (i < 20 ? 1 : 2) + 0.01 * ((7 * i) % 5)))).toBeLessThan(
    10,
  );
});

test("is from 1 to n for any values, and does not depend on the scale", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 30 }), (values) => {
      const count = effectiveCount(values);
      expect(count >= 1 && count <= values.length).toBe(true);
      expect(effectiveCount(values.map((value) => 3 * value + 1))).toBe(count);
    }),
  );
});
