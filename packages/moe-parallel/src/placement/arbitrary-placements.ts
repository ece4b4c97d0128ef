import fc from "fast-check";
import type { ExpertPlacement } from "./expert-placement.ts";

/** For laws: placements of one expert per slot. */
export const placementOf = (numRanks: number, numSlotsPerRank: number): fc.Arbitrary<ExpertPlacement> => {
  const experts = Array.from({ length: numRanks * numSlotsPerRank }, (_, expert) => expert);
  return fc
    .shuffledSubarray(experts, { minLength: experts.length })
    .map((expertOfSlot) => ({ numExperts: experts.length, numRanks, expertOfSlot }));
};

/** For laws: placements where each expert has one slot. */
export const placementWithoutReplicas: fc.Arbitrary<ExpertPlacement> = fc
  .tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 4 }))
  .chain(([numRanks, numSlots]) => placementOf(numRanks, numSlots));

/** For laws: placements where spare slots hold any expert again, on the same rank too. */
export const placementWithReplicas: fc.Arbitrary<ExpertPlacement> = placementWithoutReplicas.chain((placement) =>
  fc.integer({ min: 1, max: placement.numExperts }).map((numExperts) => ({
    ...placement,
    numExperts,
    expertOfSlot: placement.expertOfSlot.map((expert) => expert % numExperts),
  })),
);
