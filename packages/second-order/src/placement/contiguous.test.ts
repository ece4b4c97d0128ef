import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { contiguousGroups } from "./contiguous.ts";

const largestLoad = (weights: readonly number[], groups: readonly number[]): number =>
  Math.max(...groups.map((group) => weights.reduce((sum, weight, i) => (groups[i] === group ? sum + weight : sum), 0)));

const bestOfAllCuts = (weights: readonly number[], numRanks: number): number => {
  if (numRanks === 1) return weights.reduce((sum, weight) => sum + weight, 0);
  return Math.min(
    ...Array.from({ length: weights.length + 1 }, (_, cut) =>
      Math.max(
        weights.slice(0, cut).reduce((sum, weight) => sum + weight, 0),
        bestOfAllCuts(weights.slice(cut), numRanks - 1),
      ),
    ),
  );
};

describe("contiguousGroups", () => {
  test("is the best of all partitions, up to ten weights", () =>
    fc.assert(
      fc.property(
        fc.array(fc.nat(30), { minLength: 1, maxLength: 10 }),
        fc.integer({ min: 1, max: 4 }),
        (weights, p) => {
          const groups = contiguousGroups(weights, p);
          expect(groups).toHaveLength(weights.length);
          expect(groups).toEqual(groups.toSorted((a, b) => a - b));
          for (const group of groups) expect(group).toBeLessThan(p);
          expect(largestLoad(weights, groups)).toBe(bestOfAllCuts(weights, p));
        },
      ),
    ));

  test("handles more ranks than weights, and zeros", () => {
    expect(largestLoad([2, 7, 1], contiguousGroups([2, 7, 1], 5))).toBe(7);
    expect(contiguousGroups([0, 0], 3)).toHaveLength(2);
  });

  test.each([
    [[], 2, /no weights were given/],
    [[1, -2], 2, /weight 1 is -2/],
    [[Infinity], 2, /weight 0 is Infinity/],
    [[1], 0, /numRanks is 0/],
  ])("rejects %j on %d ranks", (weights, numRanks, message) => {
    expect(() => contiguousGroups(weights, numRanks)).toThrow(message);
  });
});
