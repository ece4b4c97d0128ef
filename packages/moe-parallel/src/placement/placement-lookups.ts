import type { ExpertPlacement } from "./expert-placement.ts";

/** Returns S, the number of slots per rank. */
export const numSlotsPerRank = ({ expertOfSlot, numRanks }: ExpertPlacement): number => expertOfSlot.length / numRanks;

/** Returns the rank of a slot. */
export const rankOfSlot = (placement: ExpertPlacement, slot: number): number =>
  Math.floor(slot / numSlotsPerRank(placement));

/**
 * Returns the experts of a rank, in slot order. An expert with two slots on the rank is listed twice.
 * @example
 * ```ts
 * console.log(expertsOfRank(placeInOrder(4, 2), 1)); // [2, 3]
 * ```
 */
export const expertsOfRank = (placement: ExpertPlacement, rank: number): readonly number[] => {
  const numSlots = numSlotsPerRank(placement);
  return placement.expertOfSlot.slice(rank * numSlots, (rank + 1) * numSlots);
};

/** Returns the slots of each expert, ascending. */
export const slotsOfExperts = ({ numExperts, expertOfSlot }: ExpertPlacement): readonly (readonly number[])[] => {
  const slots: number[][] = Array.from({ length: numExperts }, () => []);
  for (const [slot, expert] of expertOfSlot.entries()) slots[expert]!.push(slot);
  return slots;
};

/** Returns the ranks of each expert, ascending, without duplicates. */
export const ranksOfExperts = (placement: ExpertPlacement): readonly (readonly number[])[] =>
  slotsOfExperts(placement).map((slots) => [...new Set(slots.map((slot) => rankOfSlot(placement, slot)))]);

/**
 * Returns the lowest slot of each expert: the inverse of `expertOfSlot`. Without replicas, both lists are permutations.
 * @example
 * ```ts
 * console.log(slotOfExpert(placementFromPositions([2, 1, 0, 3], 2))); // [2, 1, 0, 3]
 * ```
 */
export const slotOfExpert = (placement: ExpertPlacement): readonly number[] =>
  slotsOfExperts(placement).map(([first]) => first!);

/**
 * Returns the total load of each rank. The replicas of an expert share its load equally.
 *
 * @param loads load of each expert, in any unit.
 * @example
 * ```ts
 * console.log(loadsOfRanks(placeInOrder(4, 2), [5, 1, 2, 2])); // [6, 4]
 * ```
 */
export const loadsOfRanks = (placement: ExpertPlacement, loads: readonly number[]): readonly number[] => {
  const numReplicas = slotsOfExperts(placement).map(({ length }) => length);
  return Array.from({ length: placement.numRanks }, (_, rank) =>
    expertsOfRank(placement, rank).reduce((sum, expert) => sum + loads[expert]! / numReplicas[expert]!, 0),
  );
};
