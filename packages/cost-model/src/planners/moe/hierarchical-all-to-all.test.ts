import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { models } from "../../../test/profiles.ts";
import { routings } from "../../../test/routings.ts";
import type { LinearCollectiveModel } from "../../collective-model.ts";
import {
  type Hierarchy,
  type HierarchyLevel,
  plainAllToAllSeconds,
  planHierarchicalAllToAll,
} from "./hierarchical-all-to-all.ts";
import { allCopies, distinctCopies, type ExpertRouting } from "./routing.ts";
import { smoothMaximum } from "./smooth-maximum.ts";

const free = { startupSeconds: 0, secondsPerByte: 0 };
const bytes = { startupSeconds: 0, secondsPerByte: 1 };

/** Numbers of groups per level, for 24 ranks. */
const shapes = fc.constantFrom([2], [2, 4, 12], [3, 6, 12], [4, 8], [2, 6, 24], [4, 24]);
/** Links whose flat all-to-all, or all-to-all at the first level, can be slowed by changing its time per byte. */
interface LinearHierarchy extends Hierarchy {
  readonly flat: LinearCollectiveModel;
  readonly levels: readonly (HierarchyLevel & { readonly between: LinearCollectiveModel })[];
}
const slowerBy = ({ startupSeconds, secondsPerByte }: LinearCollectiveModel, more: number): LinearCollectiveModel => ({
  startupSeconds,
  secondsPerByte: secondsPerByte + more,
});
const withOutermost = (hierarchy: LinearHierarchy, between: LinearCollectiveModel): Hierarchy => ({
  ...hierarchy,
  levels: hierarchy.levels.with(0, { ...hierarchy.levels[0]!, between }),
});
const hierarchies: fc.Arbitrary<LinearHierarchy> = shapes.chain((numGroups) =>
  fc.record({
    numRanks: fc.constant(24),
    flat: models,
    levels: fc.tuple(
      ...numGroups.map((count) => fc.record({ numGroups: fc.constant(count), between: models, within: models })),
    ),
  }),
);
const one = { bytesPerToken: 1 };

/**
 * Exchange the tokens of 24 ranks with equal routing, level by level, by the published rule: the number of tokens that
 * a rank sends between groups is the number of groups within its own group, times the maximum number of tokens that any
 * rank has for one of these groups.
 * @returns the number of tokens sent at each level and within the groups of the last level, and the tokens of each rank
 * at the end.
 */
const carried = (
  { experts, expertsPerToken }: ExpertRouting,
  numGroups: readonly number[],
): {
  readonly between: readonly number[];
  readonly within: number;
  readonly tokensByRank: readonly ReadonlySet<string>[];
} => {
  const tokens = Array.from({ length: experts.length / expertsPerToken }, (_, token) => [
    ...experts.subarray(token * expertsPerToken, (token + 1) * expertsPerToken),
  ]);
  let tokensByRank = Array.from(
    { length: 24 },
    (_, rank) => new Set(tokens.map((_token, token) => `${rank} ${token}`)),
  );
  const step = (before: number, after: number): number => {
    const next = tokensByRank.map(() => new Set<string>());
    const size = 24 / after;
    let most = 0;
    for (const [rank, tokensOfRank] of tokensByRank.entries())
      for (let part = 0; part < after / before; part++) {
        const group = Math.floor(rank / (24 / before)) * (after / before) + part;
        const wanted = [...tokensOfRank].filter((name) =>
          tokens[Number(name.split(" ")[1])]!.some((expert) => Math.floor(expert / size) === group),
        );
        most = Math.max(most, wanted.length);
        for (const name of wanted) next[group * size + (rank % size)]!.add(name);
      }
    tokensByRank = next;
    return (after / before) * most;
  };
  const between = numGroups.map((count, i) => step(numGroups[i - 1] ?? 1, count));
  return { between, within: step(numGroups.at(-1)!, 24), tokensByRank };
};

describe("planHierarchicalAllToAll", () => {
  test("has the bytes of the published steps, counted over the tokens present at each level", () => {
    fc.assert(
      fc.property(routings, shapes, (routing, numGroups) => {
        const published = carried(routing, numGroups);
        const levels: readonly HierarchyLevel[] = numGroups.map((count) => ({
          numGroups: count,
          between: free,
          within: free,
        }));
        const bytesWhere = (level: number, part: "between" | "within"): number =>
          planHierarchicalAllToAll(
            routing,
            { numRanks: 24, flat: free, levels: levels.with(level, { ...levels[level]!, [part]: bytes }) },
            one,
          ).secondsByDepth[numGroups.length]!;
        expect(numGroups.map((_, level) => bytesWhere(level, "between"))).toEqual(published.between);
        expect(bytesWhere(numGroups.length - 1, "within")).toBe(published.within);
        // After each step, a rank has the tokens of its experts, each token once.
        const distinct = distinctCopies(routing, 24);
        expect(published.tokensByRank.map(({ size }) => size)).toEqual([...distinct].map((count) => 24 * count));
      }),
      { numRuns: 60 },
    );
  });

  test("chooses the fastest depth; every depth beyond the flat one starts with the same exchange", () => {
    const depths = new Set<number>();
    fc.assert(
      fc.property(routings, hierarchies, (routing, hierarchy) => {
        const { depth, seconds, secondsByDepth } = planHierarchicalAllToAll(routing, hierarchy, one);
        depths.add(depth);
        expect(seconds).toBe(Math.min(...secondsByDepth));
        expect(secondsByDepth[depth - 1]).toBe(seconds);
        const first = planHierarchicalAllToAll(routing, withOutermost(hierarchy, free), one).secondsByDepth;
        const outermost = secondsByDepth.slice(1).map((time, i) => time - first[i + 1]!);
        expect(new Set(outermost).size).toBe(1);
        expect(outermost[0]).toBeGreaterThanOrEqual(hierarchy.levels[0]!.between.startupSeconds);
      }),
      { numRuns: 300 },
    );
    expect(depths.size).toBe(4);
  });

  test("a slower flat all-to-all is never chosen; a slower outermost level may make it the choice, but does not reorder other depths", () => {
    const order = (seconds: readonly number[]): readonly number[] =>
      [...seconds.keys()].slice(1).toSorted((a, b) => seconds[a]! - seconds[b]!);
    let numMoves = 0;
    fc.assert(
      fc.property(routings, hierarchies, fc.nat(20), (routing, hierarchy, more) => {
        const { flat, levels } = hierarchy;
        const plan = planHierarchicalAllToAll(routing, hierarchy, one);
        const flatSlower = planHierarchicalAllToAll(routing, { ...hierarchy, flat: slowerBy(flat, more) }, one);
        if (plan.depth > 1) expect(flatSlower.depth).toBe(plan.depth);
        const outer = withOutermost(hierarchy, slowerBy(levels[0]!.between, more));
        const outerSlower = planHierarchicalAllToAll(routing, outer, one);
        expect(order(outerSlower.secondsByDepth)).toEqual(order(plan.secondsByDepth));
        if (outerSlower.depth !== plan.depth) {
          numMoves++;
          expect(outerSlower.depth).toBe(1);
        }
      }),
      { numRuns: 500 },
    );
    expect(numMoves).toBeGreaterThan(5);
  });

  test("the flat exchange without duplicates is never slower than the plain one", () => {
    fc.assert(
      fc.property(routings, hierarchies, (routing, hierarchy) => {
        const plain = plainAllToAllSeconds(routing, hierarchy, one);
        expect(planHierarchicalAllToAll(routing, hierarchy, one).secondsByDepth[0]).toBeLessThanOrEqual(plain);
      }),
    );
    // By hand: two tokens have both experts on rank 0. They send four rows to rank 0 with duplicates, two rows without;
    // rank 0 is the busiest rank.
    const routing = { experts: Int32Array.of(0, 1, 1, 0), expertsPerToken: 2, numExperts: 4 };
    const hierarchy = { numRanks: 2, flat: { startupSeconds: 3, secondsPerByte: 1 }, levels: [] };
    expect(plainAllToAllSeconds(routing, hierarchy, { bytesPerToken: 10 })).toBe(3 + 2 * 4 * 10);
    expect(planHierarchicalAllToAll(routing, hierarchy, { bytesPerToken: 10 })).toEqual({
      depth: 1,
      seconds: 3 + 2 * 2 * 10,
      secondsByDepth: [3 + 2 * 2 * 10],
    });
    expect(plainAllToAllSeconds(routing, hierarchy, { bytesPerToken: 10, numSources: 2 })).toBe(3 + 4 * 10);
    const smooth = { bytesPerToken: 10, maximum: smoothMaximum };
    expect(plainAllToAllSeconds(routing, hierarchy, smooth)).toBe(3 + 20 * smoothMaximum(allCopies(routing, 2)));
  });

  test("rejects levels that do not divide one another, and invalid values", () => {
    const routing = { experts: new Int32Array(0), expertsPerToken: 1, numExperts: 24 };
    const level = (numGroups: number): HierarchyLevel => ({ numGroups, between: free, within: free });
    const plan = (numRanks: number, ...levels: HierarchyLevel[]) =>
      planHierarchicalAllToAll(routing, { numRanks, flat: free, levels }, one);
    expect(() => plan(24, level(4), level(6))).toThrow(/level 1 of a hierarchy has 6 groups inside 4/);
    expect(() => plan(24, level(1))).toThrow(/level 0 of a hierarchy has 1 groups inside 1/);
    expect(() => plan(6, level(4))).toThrow(/6 ranks in 4 groups/);
    expect(() =>
      planHierarchicalAllToAll(routing, { numRanks: 24, flat: free, levels: [] }, { bytesPerToken: 1, numSources: 0 }),
    ).toThrow(/numSources is 0/);
  });
});
