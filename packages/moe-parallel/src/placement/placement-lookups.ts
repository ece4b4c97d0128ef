import type { ExpertPlacement } from "./expert-placement.ts";

/** S: how many slots every rank has. */
export const numSlotsPerRank = ({ expertOfSlot, numRanks }: ExpertPlacement): number => expertOfSlot.length / numRanks;

/** The rank whose memory holds a slot. */
export const rankOfSlot = (placement: ExpertPlacement, slot: number): number =>
  Math.floor(slot / numSlotsPerRank(placement));

/** The experts of a rank, in the order of its slots; an expert with two slots there stands twice. */
export const expertsOfRank = (placement: ExpertPlacement, rank: number): readonly number[] => {
  const numSlots = numSlotsPerRank(placement);
  return placement.expertOfSlot.slice(rank * numSlots, (rank + 1) * numSlots);
};

/** The slots of every expert, ascending. */
export const slotsOfExperts = ({ numExperts, expertOfSlot }: ExpertPlacement): readonly (readonly number[])[] => {
  const slots: number[][] = Array.from({ length: numExperts }, () => []);
  for (const [slot, expert] of expertOfSlot.entries()) slots[expert]!.push(slot);
  return slots;
};

/** The ranks that hold every expert, ascending, each once. */
export const ranksOfExperts = (placement: ExpertPlacement): readonly (readonly number[])[] =>
  slotsOfExperts(placement).map((slots) => [...new Set(slots.map((slot) => rankOfSlot(placement, slot)))]);

/**
 * The lowest slot of every expert: where `expertOfSlot` puts rows of experts into slots, this takes them back. Without
 * replicas the two are permutations, and inverses of each other.
 */
export const slotOfExpert = (placement: ExpertPlacement): readonly number[] =>
  slotsOfExperts(placement).map(([first]) => first!);

/**
 * Add up what each rank has to do, where replicas share the load of their expert equally.
 *
 * @param loads of every expert, in any unit.
 */
export const loadsOfRanks = (placement: ExpertPlacement, loads: readonly number[]): readonly number[] => {
  const numReplicas = slotsOfExperts(placement).map(({ length }) => length);
  return Array.from({ length: placement.numRanks }, (_, rank) =>
    expertsOfRank(placement, rank).reduce((sum, expert) => sum + loads[expert]! / numReplicas[expert]!, 0),
  );
};
