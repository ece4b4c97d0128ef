import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkExpertPlacement, withExpertsSwapped, type ExpertPlacement, placeInOrder } from "./expert-placement.ts";
import { placementWithReplicas } from "./arbitrary-placements.ts";

describe("checkExpertPlacement", () => {
  test("accepts every valid placement, also from JSON", () => {
    fc.assert(
      fc.property(placementWithReplicas, (placement) => {
        checkExpertPlacement(JSON.parse(JSON.stringify(placement)) as ExpertPlacement);
      }),
    );
  });

  test.each([
    [{ numExperts: 2, numRanks: 2, expertOfSlot: [0, 1, 0] }, /3 slots are not divisible by 2 ranks/],
    [{ numExperts: 3, numRanks: 2, expertOfSlot: [0, 1, 0, 1] }, /none of 4 slots holds expert 2 of 3/],
    [{ numExperts: 2, numRanks: 2, expertOfSlot: [0, 2] }, /slot 1 holds expert 2 of 2/],
    [{ numExperts: 2, numRanks: 2, expertOfSlot: [-1, 1] }, /slot 0 holds expert -1 of 2/],
    [{ numExperts: 2, numRanks: 2, expertOfSlot: [0.5, 1] }, /slot 0 holds expert 0\.5 of 2/],
    [{ numExperts: 1, numRanks: 0, expertOfSlot: [0] }, /1 experts on 0 ranks/],
    [{ numExperts: 1, numRanks: 1, expertOfSlot: [] }, /none of 0 slots holds expert 0 of 1/],
  ])("rejects %j in one line", (placement, message) => {
    expect(() => checkExpertPlacement(placement)).toThrow(message);
    expect(() => checkExpertPlacement(placement)).toThrow(/^.*$/);
  });

  test("rejects replicas on one rank only if forbidden, and never replicas on two ranks", () => {
    const separate = { numExperts: 2, numRanks: 2, expertOfSlot: [0, 1, 1, 0] };
    const together = { numExperts: 2, numRanks: 2, expertOfSlot: [0, 1, 0, 0] };
    checkExpertPlacement(separate, { shouldSeparateReplicas: true });
    checkExpertPlacement(together);
    expect(() => checkExpertPlacement(together, { shouldSeparateReplicas: true })).toThrow(
      /slot 3 is a second replica of expert 0 on rank 1/,
    );
  });
});

test("placeInOrder gives each rank consecutive experts, and rejects experts that are not divisible by ranks", () => {
  expect(placeInOrder(4, 2).expertOfSlot).toEqual([0, 1, 2, 3]);
  expect(() => placeInOrder(5, 2)).toThrow(/5 slots are not divisible by 2 ranks/);
});

test("withExpertsSwapped is its own inverse, and swaps replicas too", () => {
  expect(withExpertsSwapped({ numExperts: 3, numRanks: 2, expertOfSlot: [0, 1, 2, 0] }, 0, 1).expertOfSlot).toEqual([
    1, 0, 2, 1,
  ]);
  fc.assert(
    fc.property(placementWithReplicas, fc.nat(), fc.nat(), (placement, x, y) => {
      const [a, b] = [x % placement.numExperts, y % placement.numExperts];
      expect(withExpertsSwapped(withExpertsSwapped(placement, a, b), a, b)).toEqual(placement);
      expect(withExpertsSwapped(placement, a, a)).toEqual(placement);
    }),
  );
});
