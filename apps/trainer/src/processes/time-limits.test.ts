import { expect, test } from "vitest";
import { timeLimits } from "./time-limits.ts";

test("each time limit exceeds the one inside it", () => {
  const milliseconds = Object.values(timeLimits);
  expect(milliseconds).toEqual(milliseconds.toSorted((a, b) => a - b));
  expect(new Set(milliseconds).size).toBe(milliseconds.length);
});
