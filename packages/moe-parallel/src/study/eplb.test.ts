import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { placeByEplb } from "./eplb.ts";
import { checkExpertPlacement } from "../placement/expert-placement.ts";
import { ranksOfExperts, slotsOfExperts } from "../placement/placement-lookups.ts";

/** Generates test cases: expert loads, with groups, hosts, ranks, and slots for replicas. */
const cases = fc
  .record({
    numHosts: fc.integer({ min: 1, max: 3 }),
    groupsPerHost: fc.integer({ min: 1, max: 3 }),
    groupSize: fc.integer({ min: 1, max: 3 }),
    ranksPerHost: fc.integer({ min: 1, max: 3 }),
    spare: fc.nat(3),
  })
  .chain(({ numHosts, groupsPerHost, groupSize, ranksPerHost, spare }) => {
    const numExperts = numHosts * groupsPerHost * groupSize;
    const numRanks = numHosts * ranksPerHost;
    const numSlots = (Math.ceil(numExperts / numRanks) + spare) * numRanks;
    const options = { numHosts, numRanks, numSlots, numGroups: numHosts * groupsPerHost };
    const loads = fc.array(fc.oneof(fc.nat(3), fc.nat(1000)), { minLength: numExperts, maxLength: numExperts });
    return fc.tuple(loads, fc.constant(options));
  });

/** Returns the smallest possible maximum load per replica, by exhaustive search over numbers of replicas. */
const minLargest = (loads: readonly number[], numSlots: number): number => {
  const [first, ...others] = loads;
  if (others.length === 0) return first! / numSlots;
  return Math.min(
    ...Array.from({ length: numSlots - others.length }, (_, i) =>
      Math.max(first! / (i + 1), minLargest(others, numSlots - i - 1)),
    ),
  );
};

describe("placeByEplb", () => {
  test("places the two layers of the published example as published", () => {
    const layers = [
      [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
      [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
    ];
    expect(
      layers.map((loads) => placeByEplb(loads, { numRanks: 8, numSlots: 16, numHosts: 2, numGroups: 4 }).expertOfSlot),
    ).toEqual([
      [5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1],
      [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1],
    ]);
  });

  test("returns valid placements, and keeps every group on one host", () => {
    fc.assert(
      fc.property(cases, ([loads, options]) => {
        const placement = placeByEplb(loads, options);
        checkExpertPlacement(placement);
        expect(placement.expertOfSlot).toHaveLength(options.numSlots);
        const ranks = ranksOfExperts(placement);
        const [groupSize, hostSize] = [loads.length / options.numGroups, options.numRanks / options.numHosts];
        for (let group = 0; group < options.numGroups; group++) {
          const own = ranks.slice(group * groupSize, (group + 1) * groupSize).flat();
          expect(new Set(own.map((rank) => Math.floor(rank / hostSize))).size).toBe(1);
        }
      }),
    );
  });

  test("no other numbers of replicas have a smaller maximum load per replica", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat(3), fc.nat(50)), { minLength: 1, maxLength: 5 }),
        fc.nat(5),
        (loads, spare) => {
          const numSlots = loads.length + spare;
          const slots = slotsOfExperts(placeByEplb(loads, { numRanks: 1, numSlots }));
          expect(Math.max(...loads.map((load, expert) => load / slots[expert]!.length))).toBeCloseTo(
            minLargest(loads, numSlots),
            9,
          );
        },
      ),
    );
  });

  test("is global if groups are not divisible by hosts", () => {
    const loads = [9, 1, 4, 7, 3, 3];
    const all = { numRanks: 4, numSlots: 8 };
    expect(placeByEplb(loads, { ...all, numHosts: 2, numGroups: 3 })).toEqual(placeByEplb(loads, all));
    expect(placeByEplb(loads, { ...all, numHosts: 2, numGroups: 2 })).not.toEqual(placeByEplb(loads, all));
  });

  test("all load on one expert takes every spare slot; zero loads spread them", () => {
    const numReplicas = (loads: readonly number[]): number[] =>
      slotsOfExperts(placeByEplb(loads, { numRanks: 2, numSlots: 8 })).map(({ length }) => length);
    expect(numReplicas([0, 8, 0, 0])).toEqual([1, 5, 1, 1]);
    expect(numReplicas([0, 0, 0, 0])).toEqual([2, 2, 2, 2]);
  });

  test.each([
    [[1, 2], { numRanks: 1, numSlots: 1 }, /1 slots for 2 experts/],
    [[1, 2], { numRanks: 2, numSlots: 3 }, /3 slots are not divisible by 2 ranks/],
    [[1, 2], { numRanks: 4, numSlots: 4, numHosts: 3 }, /4 ranks are not divisible by 3 hosts/],
    [[1, 2, 3], { numRanks: 1, numSlots: 3, numGroups: 2 }, /3 experts are not divisible by 2 groups/],
    [[], { numRanks: 1, numSlots: 1 }, /no loads were given/],
    [[1, -2], { numRanks: 1, numSlots: 2 }, /the load of expert 1 is -2/],
    [[NaN], { numRanks: 1, numSlots: 2 }, /the load of expert 0 is NaN/],
  ])("rejects %j with %j", (loads, options, message) => {
    expect(() => placeByEplb(loads, options)).toThrow(message);
  });
});
