import { hierMoeDuplication } from "@skein/published-measurements";
import { describe, expect, test } from "vitest";
import { uniformDuplicationRate } from "./duplication-rate.ts";

const expertsPerToken = [2, 4, 6, 8] as const;
const published = hierMoeDuplication.flatMap(({ numGroups, percent }) =>
  expertsPerToken.map((k) => ({ numGroups, k, percent: percent[k] })),
);

describe("of 256 experts", () => {
  test.each(published)(
    "$k for each token in $numGroups groups: $percent % measured, by the formula within 1.05 points",
    (row) => {
      const rate = uniformDuplicationRate({ numExperts: 256, expertsPerToken: row.k }, row.numGroups);
      expect(Math.abs(100 * rate - row.percent)).toBeLessThan(1.05);
    },
  );
});

/** Returns all sets of K of the experts `first` to `numExperts` − 1. */
const setsOf = (k: number, numExperts: number, first = 0): readonly (readonly number[])[] =>
  k === 0
    ? [[]]
    : Array.from({ length: numExperts - first }, (_, i) => first + i).flatMap((expert) =>
        setsOf(k - 1, numExperts, expert + 1).map((rest) => [expert, ...rest]),
      );

test("equals the saved fraction of copies over all sets of experts", () => {
  for (const numExperts of [1, 6, 8])
    for (let k = 1; k <= numExperts; k++)
      for (let numGroups = 1; numGroups <= numExperts; numGroups++) {
        if (numExperts % numGroups !== 0) continue;
        const sets = setsOf(k, numExperts);
        const copies = sets.reduce(
          (sum, experts) => sum + new Set(experts.map((expert) => Math.floor((expert * numGroups) / numExperts))).size,
          0,
        );
        expect(uniformDuplicationRate({ numExperts, expertsPerToken: k }, numGroups)).toBeCloseTo(
          1 - copies / (k * sets.length),
          12,
        );
      }
});

test("the rate increases with fewer groups, up to 1 − 1 / K for one", () => {
  for (const k of expertsPerToken) {
    const rates = [256, 64, 32, 8, 4, 2, 1].map((numGroups) =>
      uniformDuplicationRate({ numExperts: 256, expertsPerToken: k }, numGroups),
    );
    expect(rates).toEqual(rates.toSorted((x, y) => x - y));
  }
  for (const k of expertsPerToken) {
    expect(uniformDuplicationRate({ numExperts: 256, expertsPerToken: k }, 1)).toBeCloseTo(1 - 1 / k, 12);
    expect(uniformDuplicationRate({ numExperts: 256, expertsPerToken: k }, 256)).toBeCloseTo(0, 12);
  }
  // All experts are chosen for each token, so every token is sent to every group.
  expect(uniformDuplicationRate({ numExperts: 8, expertsPerToken: 8 }, 4)).toBeCloseTo(1 / 2, 12);
});
