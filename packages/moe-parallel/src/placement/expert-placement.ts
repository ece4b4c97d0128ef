import { ArgumentError } from "@skein/tensor-core";

/**
 * Assignment of experts to ranks: plain data, equal on all ranks, can be serialized as JSON.
 *
 * Every rank has S = slots / ranks slots. A slot contains the parameters of one logical expert. Rank r has the slots
 * from r · S to (r + 1) · S − 1. An expert in several slots has replicas.
 */
export interface ExpertPlacement {
  /** E, number of logical experts, numbered from 0. */
  readonly numExperts: number;
  /** P, number of ranks. */
  readonly numRanks: number;
  /** Logical expert of each slot. */
  readonly expertOfSlot: readonly number[];
}

export interface CheckExpertPlacementOptions {
  /**
   * Whether to forbid two replicas of an expert on the same rank, because the second replica only costs memory.
   * Default: false.
   */
  readonly shouldSeparateReplicas?: boolean;
}

/**
 * Checks that every slot contains an expert, and every expert has a slot.
 *
 * @throws ArgumentError if a count is not a positive integer, the number of slots is not divisible by the number of
 * ranks, an expert does not exist or has no slot, or a rank has two replicas of an expert although this is forbidden.
 */
export const checkExpertPlacement = (
  { numExperts, numRanks, expertOfSlot }: ExpertPlacement,
  { shouldSeparateReplicas = false }: CheckExpertPlacementOptions = {},
): void => {
  if (!Number.isInteger(numExperts) || numExperts < 1 || !Number.isInteger(numRanks) || numRanks < 1)
    throw new ArgumentError(
      `expert placement: ${numExperts} experts on ${numRanks} ranks; both must be whole numbers from 1`,
    );
  const numSlots = expertOfSlot.length;
  if (numSlots % numRanks !== 0)
    throw new ArgumentError(
      `expert placement: ${numSlots} slots are not divisible by ${numRanks} ranks; give every rank the same number`,
    );
  const seen = new Map<number, number>();
  for (const [slot, expert] of expertOfSlot.entries()) {
    if (!Number.isInteger(expert) || expert < 0 || expert >= numExperts)
      throw new ArgumentError(
        `expert placement: slot ${slot} holds expert ${expert} of ${numExperts}; experts must be whole numbers from 0 to ${numExperts - 1}`,
      );
    // Slots are ordered by rank, so the current rank has the expert only if it is the last rank seen with the expert.
    const rank = Math.floor((slot * numRanks) / numSlots);
    if (shouldSeparateReplicas && seen.get(expert) === rank)
      throw new ArgumentError(
        `expert placement: slot ${slot} is a second replica of expert ${expert} on rank ${rank}; replicas of an expert must be on different ranks, move one`,
      );
    seen.set(expert, rank);
  }
  for (let expert = 0; expert < numExperts; expert++)
    if (!seen.has(expert))
      throw new ArgumentError(
        `expert placement: none of ${numSlots} slots holds expert ${expert} of ${numExperts}; every expert needs at least one`,
      );
};

/**
 * Places experts in order, with one slot per expert: rank 0 has the first E / P experts.
 *
 * @throws ArgumentError if experts are not divisible by ranks.
 * @example
 * ```ts
 * console.log(placeInOrder(4, 2).expertOfSlot); // [0, 1, 2, 3]
 * ```
 */
export const placeInOrder = (numExperts: number, numRanks: number): ExpertPlacement => {
  const placement = { numExperts, numRanks, expertOfSlot: Array.from({ length: numExperts }, (_, expert) => expert) };
  checkExpertPlacement(placement);
  return placement;
};

/** Returns the placement with two experts swapped, including their replicas. */
export const withExpertsSwapped = (placement: ExpertPlacement, a: number, b: number): ExpertPlacement => ({
  ...placement,
  expertOfSlot: placement.expertOfSlot.map((expert) => (expert === a ? b : expert === b ? a : expert)),
});
