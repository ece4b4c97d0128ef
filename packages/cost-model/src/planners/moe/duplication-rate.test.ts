import { hierMoeDuplication } from "@skein/published-measurements";
import { randomKey } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { routings } from "../../../test/routings.ts";
import { duplicationRate, uniformDuplicationRate } from "./duplication-rate.ts";
import { uniformRouting } from "./routing.ts";

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

  test("a simulated even routing of 20,000 tokens has the rate of the formula, within half a point", () => {
    for (const k of expertsPerToken) {
      const of = { numExperts: 256, expertsPerToken: k };
      const routing = uniformRouting(20_000, of, randomKey(k).data);
      for (const { numGroups } of hierMoeDuplication)
        expect(Math.abs(duplicationRate(routing, numGroups) - uniformDuplicationRate(of, numGroups))).toBeLessThan(
          5e-3,
        );
    }
  });
});

test("the rate increases with fewer groups, up to 1 − 1 / K for one", () => {
  fc.assert(
    fc.property(routings, (routing) => {
      const rates = [24, 12, 6, 2, 1].map((numGroups) => duplicationRate(routing, numGroups));
      expect(rates).toEqual(rates.toSorted((a, b) => a - b));
      expect(rates[0]).toBe(0);
      if (routing.experts.length > 0) expect(rates.at(-1)).toBeCloseTo(1 - 1 / routing.expertsPerToken, 12);
    }),
  );
  for (const k of expertsPerToken) {
    expect(uniformDuplicationRate({ numExperts: 256, expertsPerToken: k }, 1)).toBeCloseTo(1 - 1 / k, 12);
    expect(uniformDuplicationRate({ numExperts: 256, expertsPerToken: k }, 256)).toBeCloseTo(0, 12);
  }
  // All experts are chosen for each token, so every token is sent to every group.
  expect(uniformDuplicationRate({ numExperts: 8, expertsPerToken: 8 }, 4)).toBeCloseTo(1 / 2, 12);
});
