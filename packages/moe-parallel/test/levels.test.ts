import { ArgumentError, type NdArray } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { duplicateFreeDispatcher, hierarchicalDispatcher, type TokenDispatcher } from "../src/index.ts";
import { groupsOfExperts, messageCounts } from "../src/placement/exchange-counts.ts";
import { placeInOrder } from "../src/placement/expert-placement.ts";
import { type Arrival, entriesOf, type DispatchCase, dispatchCases, travel } from "./dispatched.ts";
import type { GateDecisions } from "./routings.ts";

describe("copies that leave a rank at a level", () => {
  const levelMeshes = [[2], [3], [2, 2], [4], [3, 2], [2, 2, 2]];
  const axesOf = ({ levels }: DispatchCase): string[] => levels.map((_, i) => `level-${i}`);

  /** Returns a rank's coordinate along each axis; the last axis varies fastest. */
  const positionOf = (rank: number, levels: readonly number[]): number[] =>
    levels.map((size, i) => Math.floor(rank / levels.slice(i + 1).reduce((a, b) => a * b, 1)) % size);

  /**
   * Returns the number of copies that a rank sends, summed over its chunks, by hop and by receiving rank along the axis
   * of the hop.
   */
  const leavingOf = ({ metadata }: Arrival): number[][] => {
    const chunks = (metadata as readonly { readonly hops: readonly { readonly leaving_g: NdArray }[] }[]).map(
      ({ hops }) => hops.map(({ leaving_g }) => leaving_g.toNumbers()),
    );
    return chunks.reduce((total, hops) => total.map((hop, i) => hop.map((count, to) => count + hops[i]![to]!)));
  };

  /** Counts the expected copies one by one, as reference: each token once, or once for each of its entries. */
  const counted = (
    { levels, ranks }: DispatchCase,
    arrivals: readonly Arrival[],
    { axes, once }: { readonly axes: readonly number[]; readonly once: boolean },
  ): number[][][] => {
    const each = ranks[0]!.numExperts / ranks.length;
    const entries = entriesOf(arrivals).map((entry, i) => ({
      copy: once ? `${entry.rank},${entry.token}` : `${i}`,
      from: positionOf(entry.rank, levels),
      to: positionOf(Math.floor(entry.expert / each), levels),
    }));
    return ranks.map((_, rank) => {
      const own = positionOf(rank, levels);
      return axes.map((axis, hop) => {
        const isOwn = (position: readonly number[], i: number): boolean => position[i] === own[i];
        // This rank holds the copies whose targets have its coordinate on the axes used so far, and whose senders have
        // its coordinate on all other axes.
        const here = entries.filter(
          ({ from, to }) =>
            axes.slice(0, hop).every((i) => isOwn(to, i)) && axes.slice(hop).every((i) => isOwn(from, i)),
        );
        return Array.from(
          { length: levels[axis]! },
          (_group, group) => new Set(here.filter(({ to }) => to[axis] === group).map(({ copy }) => copy)).size,
        );
      });
    });
  };

  test("equal the groups with experts of its tokens, and never exceed the rows sent there", () => {
    fc.assert(
      fc.property(dispatchCases(levelMeshes), (route) => {
        const arrivals = travel(route, duplicateFreeDispatcher({ axes: axesOf(route) }));
        const axes = route.levels.map((_, i) => i);
        const copies = counted(route, arrivals, { axes, once: true });
        const rows = counted(route, arrivals, { axes, once: false });
        arrivals.forEach((arrival, rank) => {
          expect(leavingOf(arrival)).toEqual(copies[rank]);
          copies[rank]!.forEach((hop, i) =>
            hop.forEach((count, to) => expect(count).toBeLessThanOrEqual(rows[rank]![i]![to]!)),
          );
        });
      }),
      { numRuns: examples(40, 200) },
    );
  });

  test("equal its rows there in the hierarchical dispatcher, innermost axis first", () => {
    fc.assert(
      fc.property(dispatchCases(levelMeshes), (route) => {
        const arrivals = travel(route, hierarchicalDispatcher({ axes: axesOf(route) }));
        const axes = route.levels.map((_, i) => i).toReversed();
        const rows = counted(route, arrivals, { axes, once: false });
        arrivals.forEach((arrival, rank) => expect(leavingOf(arrival)).toEqual(rows[rank]));
      }),
      { numRuns: examples(30, 200) },
    );
  });

  test("equal the counts of exchange planners", () => {
    fc.assert(
      fc.property(dispatchCases(levelMeshes), (setting) => {
        const route = { ...setting, numChunks: 1 };
        const arrivals = travel(route, duplicateFreeDispatcher({ axes: axesOf(route) }));
        const { numExperts, numChoices } = route.ranks[0]!;
        const numRanks = route.ranks.length;
        const choices = Int32Array.from(arrivals.flatMap(({ order }) => order.experts_TK.toNumbers()));
        const leaving = arrivals.map(leavingOf);
        let parentGroupSize = numRanks;
        route.levels.forEach((size, level) => {
          const numGroups = (numRanks / parentGroupSize) * size;
          const groups = groupsOfExperts(placeInOrder(numExperts, numRanks), numGroups);
          const counts = messageCounts(
            { numExperts, numChoices, choices },
            groups,
            { numGroups, parentGroupSize },
            numRanks,
          );
          leaving.forEach((hops, rank) => {
            const first = Math.floor(rank / parentGroupSize) * size;
            expect(hops[level]).toEqual(
              Array.from(
                { length: size },
                (_, to) => counts[(first + to) * parentGroupSize + (rank % parentGroupSize)],
              ),
            );
          });
          parentGroupSize /= size;
        });
      }),
      { numRuns: examples(30, 200) },
    );
  });
});

describe("a capacity that is too small fails the run with a message that names rank, count and capacity:", () => {
  // Choices of each rank's three tokens, on two hosts with two ranks.
  const each = (choices: readonly number[]): GateDecisions => ({
    numExperts: 4,
    numChoices: 1,
    choices: choices.map((expert) => [expert]),
    weights: choices.map(() => [1]),
  });
  const far: DispatchCase = {
    levels: [2, 2],
    slots: 3,
    numChunks: 1,
    ranks: [each([3, 3, 0]), each([3, 3, 3]), each([-1, -1, -1]), each([-1, -1, -1])],
  };
  const axes = ["level-0", "level-1"];

  test("copies of duplicateFreeDispatcher, on either level", () => {
    const bounded = (...copiesPerRank: number[]): TokenDispatcher => duplicateFreeDispatcher({ axes, copiesPerRank });
    // The second rank sends three copies to its relay, which needs them itself. Messages count ranks along the axis.
    expect(() => travel(far, bounded(3, 3))).not.toThrow();
    expect(() => travel(far, bounded(2, 3))).toThrow(/rank 0 is asked to send 3 rows to rank 1, but its chunks have 2/);
    expect(() => travel(far, bounded(3, 2))).toThrow(/rank 1 is asked to send 3 rows to rank 1, but its chunks have 2/);
  });

  test("rows of hierarchicalDispatcher, on either level", () => {
    const bounded = (...copiesPerRank: number[]): TokenDispatcher => hierarchicalDispatcher({ axes, copiesPerRank });
    // Five rows of the first host meet on its second rank before they are sent to the other host.
    expect(() => travel(far, bounded(5, 3))).not.toThrow();
    expect(() => travel(far, bounded(4, 3))).toThrow(/rank 0 is asked to send 5 rows to rank 1, but its chunks have 4/);
    expect(() => travel(far, bounded(5, 2))).toThrow(/rank 1 is asked to send 3 rows to rank 1, but its chunks have 2/);
  });
});

test("any capacity gives the default result, or an error: nothing is lost silently", () => {
  const rooms = dispatchCases([[2], [2, 2], [3, 2], [2, 2, 2]]).chain((route) =>
    fc.record({
      route: fc.constant(route),
      copiesPerRank: fc.tuple(...route.levels.map(() => fc.integer({ min: 1, max: 6 }))),
    }),
  );
  let refused = 0;
  let run = 0;
  fc.assert(
    fc.property(
      rooms,
      fc.constantFrom(hierarchicalDispatcher, duplicateFreeDispatcher),
      ({ route, copiesPerRank }, make) => {
        const axes = route.levels.map((_, i) => `level-${i}`);
        const outputs = (dispatcher: unknown): number[][] =>
          travel(route, dispatcher as TokenDispatcher).map(({ y }) => y.toNumbers());
        run++;
        try {
          expect(outputs(make({ axes, copiesPerRank }))).toEqual(outputs(make({ axes })));
        } catch (error) {
          if (!(error instanceof ArgumentError)) throw error;
          expect(error.message).toMatch(/is asked to send \d+ rows to rank \d+, but its chunks have \d+/);
          refused++;
        }
      },
    ),
    { numRuns: examples(40, 200) },
  );
  // Both outcomes occur.
  expect(refused).toBeGreaterThan(0);
  expect(refused).toBeLessThan(run);
});

describe("rejects levels that no mesh can have, with what, both values, the rule and the cure", () => {
  const routing: GateDecisions = { numExperts: 4, numChoices: 1, choices: [[0]], weights: [[1]] };
  const route: DispatchCase = { levels: [2, 2], slots: 1, numChunks: 1, ranks: [routing, routing, routing, routing] };

  test.each([
    ["hierarchicalDispatcher", hierarchicalDispatcher],
    ["duplicateFreeDispatcher", duplicateFreeDispatcher],
  ])("%s", (name, make) => {
    const run = (axes: readonly string[]): unknown => travel(route, make({ axes }));
    expect(() => run(["level-0"])).toThrow(
      `${name}: axes have level-0 2 = 2 ranks, but axis "expert" of the experts has 4; name axes with that product, from the outermost`,
    );
    expect(() => run(["level-0", "typo"])).toThrow(/level-0 2 × typo 1 = 2 ranks/);
    expect(() => make({ axes: [] })).toThrow(/axes are \[\]; name each mesh axis/);
    expect(() => make({ axes: ["a", "a"] })).toThrow(/axes are \[a, a\]; name each mesh axis/);
    expect(() => make({ axes: ["a", "b"], priorities: [1] })).toThrow(
      /1 priorities for 2 axes, a, b; give one per axis/,
    );
    expect(() => make({ axes: ["a"], priorities: [4] })).toThrow(/priority is 4; use 0 to 3, the highest goes first/);
    expect(() => make({ axes: ["a"], copiesPerRank: [0] })).toThrow(/copiesPerRank is 0; use a whole number from 1/);
  });
});
