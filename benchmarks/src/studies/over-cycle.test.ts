import { expect, test } from "vitest";
import { overCycle } from "./over-cycle.ts";

test("what is done in one of several steps counts with its share, and one wild step does not", () => {
  const steps = [10, 1, 1, 1, 12, 1, 900, 1, 11, 1, 1, 1];
  expect(overCycle(steps, 4)).toEqual({ median: (11 + 1 + 1 + 1) / 4, mad: 1 / 4, n: 12 });
  expect(overCycle([1, 2, 9], 1)).toEqual({ median: 2, mad: 1, n: 3 });
});

test("of less than a cycle all steps count alike", () => {
  expect(overCycle([4, 2], 10)).toEqual({ median: 3, mad: 0, n: 2 });
});
