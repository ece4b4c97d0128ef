import fc from "fast-check";
import { expect, test } from "vitest";
import {
  expertsOfRank,
  loadsOfRanks,
  numSlotsPerRank,
  rankOfSlot,
  ranksOfExperts,
  slotOfExpert,
  slotsOfExperts,
} from "./placement-lookups.ts";
import { placementWithoutReplicas, placementWithReplicas } from "./arbitrary-placements.ts";

test("ranks of experts and experts of ranks agree, with each rank once", () => {
  fc.assert(
    fc.property(placementWithReplicas, (placement) => {
      const ranks = ranksOfExperts(placement);
      for (let expert = 0; expert < placement.numExperts; expert++)
        expect(ranks[expert]).toEqual(
          Array.from({ length: placement.numRanks }, (_, rank) => rank).filter((rank) =>
            expertsOfRank(placement, rank).includes(expert),
          ),
        );
    }),
  );
});

test("every slot is on its rank, and is a slot of its expert", () => {
  fc.assert(
    fc.property(placementWithReplicas, (placement) => {
      const slots = slotsOfExperts(placement);
      const perRank = numSlotsPerRank(placement);
      for (const [slot, expert] of placement.expertOfSlot.entries()) {
        expect(expertsOfRank(placement, rankOfSlot(placement, slot))[slot % perRank]).toBe(expert);
        expect(slots[expert]).toContain(slot);
      }
      expect(slots.flat()).toHaveLength(placement.expertOfSlot.length);
    }),
  );
});

test("slotOfExpert inverts expertOfSlot, with one slot of each replicated expert", () => {
  fc.assert(
    fc.property(placementWithReplicas, (placement) => {
      expect(slotOfExpert(placement).map((slot) => placement.expertOfSlot[slot])).toEqual(
        Array.from({ length: placement.numExperts }, (_, expert) => expert),
      );
    }),
  );
  fc.assert(
    fc.property(placementWithoutReplicas, (placement) => {
      const slotOf = slotOfExpert(placement);
      expect(placement.expertOfSlot.map((expert) => slotOf[expert])).toEqual(placement.expertOfSlot.map((_, i) => i));
    }),
  );
});

test("replicas share their expert's load, and no load is lost", () => {
  expect(loadsOfRanks({ numExperts: 2, numRanks: 2, expertOfSlot: [0, 1, 0, 0] }, [6, 1])).toEqual([3, 4]);
  fc.assert(
    fc.property(placementWithReplicas, (placement) => {
      const loads = Array.from({ length: placement.numExperts }, (_, expert) => expert * expert);
      const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
      expect(sum(loadsOfRanks(placement, loads))).toBeCloseTo(sum(loads), 9);
    }),
  );
});
