import fc from "fast-check";
import type { ExpertPlacement } from "./expert-placement.ts";

/** Returns a generator of placements with one expert per slot, for property tests. */
export const placementOf = (numRanks: number, numSlotsPerRank: number): fc.Arbitrary<ExpertPlacement> => {
  const experts = Array.from({ length: numRanks * numSlotsPerRank }, (_, expert) => expert);
  return fc
    .shuffledSubarray(experts, { minLength: experts.length })
    .map((expertOfSlot) => ({ numExperts: experts.length, numRanks, expertOfSlot }));
};

/** Generates placements with one slot per expert, for property tests. */
export const placementWithoutReplicas: fc.Arbitrary<ExpertPlacement> = fc
  .tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 4 }))
  .chain(([numRanks, numSlots]) => placementOf(numRanks, numSlots));

/**
 * Generates placements in which spare slots contain replicas of any expert, even of an expert on the same rank, for
 * property tests.
 */
export const placementWithReplicas: fc.Arbitrary<ExpertPlacement> = placementWithoutReplicas.chain((placement) =>
  fc.integer({ min: 1, max: placement.numExperts }).map((numExperts) => ({
    ...placement,
    numExperts,
    expertOfSlot: placement.expertOfSlot.map((expert) => expert % numExperts),
  })),
);
