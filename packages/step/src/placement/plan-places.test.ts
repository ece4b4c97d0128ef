import type { PlacementJob } from "@skein/job/node";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type LayerSituation, type PlacementSetting, planSlots } from "./plan-places.ts";

const jobOf = (own: Partial<PlacementJob>): PlacementJob => ({
  everySteps: 50,
  planner: "heaviest-first",
  when: "always",
  swaps: 4,
  loadDecay: 0.95,
  ...own,
});
const setting = (own: Partial<PlacementSetting> = {}): PlacementSetting => ({
  numRanks: 2,
  numReplicas: 1,
  bytesPerToken: 64,
  bytesPerExpert: 1000,
  sendsEachChoice: true,
  line: { startupSeconds: 1e-4, secondsPerByte: 1e-9 },
  ...own,
});

/**
 * Arbitrary inputs: loads with ties, with idle experts, or with all tokens on one expert; any placement; and a routing
 * over the same number of experts.
 */
const situations = fc
  .tuple(fc.constantFrom(1, 2, 3, 4), fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 }))
  .chain(([numRanks, each, tokensEach]) => {
    const numExperts = numRanks * each;
    const all = Array.from({ length: numExperts }, (_, expert) => expert);
    const numChoices = Math.min(2, numExperts);
    const token = fc.shuffledSubarray(all, { minLength: numChoices, maxLength: numChoices });
    return fc.record({
      numRanks: fc.constant(numRanks),
      places: fc.shuffledSubarray(all, { minLength: numExperts }),
      loads: fc.array(fc.oneof(fc.nat(2), fc.nat(900)), { minLength: numExperts, maxLength: numExperts }),
      routing: fc
        .array(token, { minLength: numRanks * tokensEach, maxLength: numRanks * tokensEach })
        .map((tokens) => ({ numExperts, numChoices, choices: Int32Array.from(tokens.flat()) })),
    });
  });

const rankLoads = (places: readonly number[], loads: readonly number[], numRanks: number): number[] => {
  const ranks = new Array<number>(numRanks).fill(0);
  places.forEach((place, expert) => {
    ranks[Math.floor((place * numRanks) / places.length)]! += loads[expert]!;
  });
  return ranks;
};

describe.each(["heaviest-first", "swap"] as const)("%s", (planner) => {
  test("gives each expert its own slot, moves no more than necessary, and finds no further gain afterwards", () => {
    fc.assert(
      fc.property(situations, fc.boolean(), ({ numRanks, ...situation }, sendsEachChoice) => {
        const on = setting({ numRanks, sendsEachChoice });
        const job = jobOf({ planner, swaps: 100 });
        const planned = planSlots(job, situation, on);
        if (planned === undefined) return;
        const { places, moves } = planned;
        expect(places.toSorted((a, b) => a - b)).toEqual(places.map((_, place) => place));
        const rankOf = (place: number): number => Math.floor((place * numRanks) / places.length);
        const changed = places.flatMap((place, expert) =>
          rankOf(place) === rankOf(situation.places[expert]!) ? [] : [expert],
        );
        expect(moves.map(({ expert }) => expert)).toEqual(changed);
        expect(moves.length).toBeGreaterThan(0);
        places.forEach((place, expert) => {
          if (!changed.includes(expert)) expect(place).toBe(situation.places[expert]);
        });
        expect(planSlots(job, { ...situation, places }, on)).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  test("`when: pays` makes only moves that it would always make, and only for a gain", () => {
    fc.assert(
      fc.property(situations, fc.integer({ min: 1, max: 400 }), ({ numRanks, ...situation }, everySteps) => {
        const on = setting({ numRanks });
        const always = planSlots(jobOf({ planner, everySteps }), situation, on);
        const pays = planSlots(jobOf({ planner, everySteps, when: "pays" }), situation, on);
        if (pays === undefined) return;
        expect(pays.gain!.gainSeconds).toBeGreaterThan(0);
        expect({ ...pays, gain: undefined }).toEqual(always);
      }),
      { numRuns: 200 },
    );
  });
});

test("heaviest-first lowers the load of the busiest rank, and reports it relative to the mean", () => {
  fc.assert(
    fc.property(situations, ({ numRanks, ...situation }) => {
      const planned = planSlots(jobOf({}), situation, setting({ numRanks }));
      if (planned === undefined) return;
      const [before, after] = [situation.places, planned.places].map((places) =>
        rankLoads(places, situation.loads, numRanks),
      );
      const mean = before!.reduce((a, b) => a + b, 0) / numRanks;
      expect(planned.busiestBefore).toBeCloseTo(Math.max(...before!) / mean, 9);
      expect(planned.busiestAfter).toBeCloseTo(Math.max(...after!) / mean, 9);
      expect(planned.busiestAfter).toBeLessThan(planned.busiestBefore);
    }),
  );
});

describe("a move", () => {
  const situation: LayerSituation = { places: [0, 1, 2, 3], loads: [500, 500, 0, 0] };

  test("is costed: four exchanges a step of half the bytes of the busiest rank, against two experts at once", () => {
    const line = { startupSeconds: 0, secondsPerByte: 1e-6 };
    const on = setting({ line, bytesPerToken: 4, bytesPerExpert: 100_000 });
    const { gain } = planSlots(jobOf({ when: "pays", everySteps: 20 }), situation, on)!;
    // From 1000 rows on the first rank to 500 rows on each rank; one expert moves in each direction.
    expect(gain!.moveSeconds).toBeCloseTo(0.1, 9);
    expect(gain!.gainSeconds).toBeCloseTo(20 * 4 * 500 * 4e-6 - 0.1, 9);
    expect(planSlots(jobOf({ when: "pays", everySteps: 12 }), situation, on)).toBeUndefined();
    // Each of two replicas has half of the tokens.
    const shared = planSlots(jobOf({ when: "pays", everySteps: 30 }), situation, { ...on, numReplicas: 2 });
    expect(shared!.gain!.gainSeconds).toBeCloseTo(30 * 4 * 250 * 4e-6 - 0.1, 9);
  });

  test("is not made before loads are known, nor where all are equal", () => {
    for (const loads of [
      [0, 0, 0, 0],
      [7, 7, 7, 7],
    ])
      expect(planSlots(jobOf({}), { ...situation, loads }, setting())).toBeUndefined();
  });

  test("counts a token once for each rank if it is sent once per rank, otherwise for each choice", () => {
    // The tokens of two ranks all choose experts 0 and 1, which are on one rank: one copy per token, or two copies.
    const routing = { numExperts: 4, numChoices: 2, choices: Int32Array.of(0, 1, 0, 1) };
    const swap = (sendsEachChoice: boolean) =>
      planSlots(jobOf({ planner: "swap" }), { ...situation, routing }, setting({ sendsEachChoice }));
    expect(swap(true)!.moves).toHaveLength(2);
    expect(swap(false)).toBeUndefined(); // on different ranks, each token would be sent to both
  });
});
