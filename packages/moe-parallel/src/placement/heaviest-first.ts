import { ArgumentError } from "@skein/tensor-core";
import { balancedPacks } from "./balanced-packs.ts";
import type { ExpertPlacement } from "./expert-placement.ts";
import { checkDivides, checkLoads } from "./loads.ts";

/** The ranks that loads are dealt out to. */
export interface HeaviestFirstOptions {
  readonly numRanks: number;
  /** What each rank has to do besides, in the unit of the loads. Default: nothing. */
  readonly rankLoads?: readonly number[];
}

/**
 * Place experts without replicas: heaviest first, each on the rank with the least to do of those with a free slot.
 * Every rank has E / P slots.
 *
 * Cost: O(E · (log E + P)).
 *
 * @param loads of each expert, such as tokens per step, a token counted once for each expert that it chose.
 * @throws ArgumentError for loads that are negative or not finite, `rankLoads` of another number of ranks, and where
 *   experts do not divide over ranks.
 *
 * Source: Zhai et al. 2023 (SmartMoE), USENIX ATC, for the choice on line by recent counts; its planner is not followed
 * in detail.
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
        `placeHeaviestFirst: ${rankLoads.length} rankLoads for ${numRanks} ranks; give one for each rank`,
      );
  }
  return { numExperts: loads.length, numRanks, expertOfSlot: balancedPacks(loads, numRanks, rankLoads).flat() };
};
