import { randomKey } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { routings } from "../../../test/routings.ts";
import { allCopies, distinctCopies, type ExpertRouting, uniformRouting } from "./routing.ts";

const total = (counts: Int32Array): number => counts.reduce((sum, count) => sum + count, 0);
const numGroupsOf24 = fc.constantFrom(1, 2, 3, 4, 6, 8, 12, 24);

/** Returns the groups that contain an expert of each token, computed directly. */
const groupsByToken = (
  { experts, expertsPerToken, numExperts }: ExpertRouting,
  numGroups: number,
): readonly number[][] =>
  Array.from({ length: experts.length / expertsPerToken }, (_, token) =>
    [...experts.subarray(token * expertsPerToken, (token + 1) * expertsPerToken)].map((expert) =>
      Math.floor((expert * numGroups) / numExperts),
    ),
  );

describe("distinctCopies", () => {
  test("counts the tokens of each group that have an expert there", () => {
    fc.assert(
      fc.property(routings, numGroupsOf24, (routing, numGroups) => {
        const tokens = groupsByToken(routing, numGroups);
        expect([...distinctCopies(routing, numGroups)]).toEqual(
          Array.from({ length: numGroups }, (_, group) => tokens.filter((groups) => groups.includes(group)).length),
        );
      }),
    );
  });

  test("is at most the tokens per group, tokens times min(K, g) in total, and all copies", () => {
    const reached = { equal: 0, less: 0 };
    fc.assert(
      fc.property(routings, numGroupsOf24, (routing, numGroups) => {
        const tokens = groupsByToken(routing, numGroups);
        const distinct = distinctCopies(routing, numGroups);
        expect(Math.max(...distinct)).toBeLessThanOrEqual(tokens.length);
        expect(total(distinct)).toBeLessThanOrEqual(tokens.length * Math.min(routing.expertsPerToken, numGroups));
        const all = allCopies(routing, numGroups);
        expect(total(all)).toBe(tokens.length * routing.expertsPerToken);
        const isDisjoint = tokens.every((groups) => new Set(groups).size === groups.length);
        expect(total(distinct) === total(all)).toBe(isDisjoint);
        reached[isDisjoint ? "equal" : "less"]++;
      }),
      { numRuns: 400 },
    );
    expect(Math.min(reached.equal, reached.less)).toBeGreaterThan(10);
  });

  test("coarser groups never have more copies in total", () => {
    fc.assert(
      fc.property(routings, (routing) => {
        for (const chain of [
          [24, 12, 6, 3, 1],
          [24, 8, 4, 2, 1],
          [24, 12, 4, 2],
        ]) {
          const totals = chain.map((numGroups) => total(distinctCopies(routing, numGroups)));
          expect(totals).toEqual(totals.toSorted((a, b) => b - a));
        }
      }),
    );
  });

  test("rejects invalid groups and experts", () => {
    const routing = { experts: Int32Array.of(0, 5), expertsPerToken: 2, numExperts: 6 };
    expect(() => distinctCopies(routing, 4)).toThrow(/6 experts are not divisible into 4 groups/);
    expect(() => distinctCopies({ ...routing, experts: Int32Array.of(0, 6) }, 2)).toThrow(
      /contains expert 6, .* 0 to 5/,
    );
    expect(() => distinctCopies({ ...routing, experts: Int32Array.of(0, -1) }, 2)).toThrow(/contains expert -1/);
    expect(() => allCopies({ ...routing, experts: Int32Array.of(0, 1, 2) }, 2)).toThrow(
      /has 3 entries, which is not a multiple of 2 experts per token/,
    );
    expect(() => allCopies({ ...routing, expertsPerToken: 7 }, 2)).toThrow(/7 of 6 experts per token/);
  });
});

describe("uniformRouting", () => {
  test("gives each token different experts, and the same ones for the same key", () => {
    fc.assert(
      fc.property(fc.nat(20), fc.integer({ min: 1, max: 9 }), fc.nat(), (numTokens, expertsPerToken, seed) => {
        const of = { numExperts: 9, expertsPerToken };
        const routing = uniformRouting(numTokens, of, randomKey(seed).data);
        for (const groups of groupsByToken(routing, 9)) expect(new Set(groups).size).toBe(expertsPerToken);
        expect(uniformRouting(numTokens, of, randomKey(seed).data)).toEqual(routing);
        expect(distinctCopies(routing, 9).every((count) => count <= numTokens)).toBe(true);
      }),
    );
  });

  test("draws all sets of experts with equal probability", () => {
    const routing = uniformRouting(60_000, { numExperts: 6, expertsPerToken: 3 }, randomKey(1).data);
    const sets = groupsByToken(routing, 6).map((experts) => experts.toSorted((a, b) => a - b).join(" "));
    const counts = [...Map.groupBy(sets, (set) => set).values()].map(({ length }) => length);
    // 20 sets of experts, with an expected count of 3000 each and a standard deviation of 53.
    expect(counts).toHaveLength(20);
    for (const count of counts) expect(Math.abs(count - 3000)).toBeLessThan(4 * 53);
  });
});
