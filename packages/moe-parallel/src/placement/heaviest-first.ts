import { ArgumentError } from "@skein/tensor-core";
import { balancedPacks } from "./balanced-packs.ts";
import type { ExpertPlacement } from "./expert-placement.ts";
import { checkDivides, checkLoads } from "./loads.ts";

/** Number of ranks on which experts are placed, and initial load of each rank. */
export interface HeaviestFirstOptions {
  readonly numRanks: number;
  /** Initial load of each rank, from work other than the placed experts, in the unit of `loads`. Default: 0. */
  readonly rankLoads?: readonly number[];
}

/**
 * Places experts without replicas: heaviest expert first, each expert on the least loaded rank with a free slot. Every
 * rank has E / P slots.
 *
 * Cost: O(E · (log E + P)).
 *
 * @param loads load of each expert, such as tokens per step; a token counts once for each expert that it chose.
 * @throws ArgumentError if a load is negative or not finite, `rankLoads` has another number of ranks, or experts are
 * not divisible by ranks.
 *
 * @example
 * ```ts
 * const placement = placeHeaviestFirst([4, 1, 3, 2], { numRanks: 2 });
 * console.log(loadsOfRanks(placement, [4, 1, 3, 2])); // [5, 5]
 * ```
 * Source: Zhai et al. 2023 (SmartMoE), USENIX ATC, for the online choice by recent counts; its planner is not
 * reproduced in detail.
 */
export const placeHeaviestFirst = (
  loads: readonly number[],
  { numRanks, rankLoads }: HeaviestFirstOptions,
): ExpertPlacement => {
  checkLoads("placeHeaviestFirst", loads);
  checkDivides("placeHeaviestFirst", [loads.length, "experts"], [numRanks, "ranks"]);
  if (rankLoads !== undefined) {
    checkLoads("placeHeaviestFirst", rankLoads, "rank");
    if (rankLoads.length !== numRanks)
      throw new ArgumentError(
        `placeHeaviestFirst: ${rankLoads.length} rankLoads for ${numRanks} ranks; give one per rank`,
      );
  }
  return { numExperts: loads.length, numRanks, expertOfSlot: balancedPacks(loads, numRanks, rankLoads).flat() };
};
