import { expect, test } from "vitest";
import { studentTail } from "./student-tail.ts";

test("matches critical values of tables", () => {
  // Two-sided values. Source: any table of Student's distribution.
  for (const [t, degrees, chance] of [
    [12.7062, 1, 0.05],
    [4.3027, 2, 0.05],
    [2.5706, 5, 0.05],
    [2.2281, 10, 0.05],
    [3.1693, 10, 0.01],
    [2.0003, 60, 0.05],
    [1.9719, 200, 0.05],
  ] as const)
    expect(studentTail(t, degrees)).toBeCloseTo(chance, 5);
});

test("handles zero, infinity and degrees beyond the range", () => {
  expect(studentTail(0, 7.4)).toBe(1);
  expect(studentTail(Infinity, 7.4)).toBe(0);
  expect(studentTail(-3, 9)).toBe(studentTail(3, 9));
  expect(studentTail(1.96, 1e9)).toBeCloseTo(0.05, 2);
  expect(studentTail(2, 0)).toBe(studentTail(2, 1));
  expect(studentTail(60, 8)).toBeGreaterThan(0);
});
