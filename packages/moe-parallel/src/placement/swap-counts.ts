import { numTokens, type Routing } from "../routing/routing.ts";
import { rankOfToken } from "./exchange-counts.ts";
import type { Exchange } from "./exchange-levels.ts";

/** Changes of the messages of one all-to-all if any expert moves to another group. */
export interface SwapCounts {
  /** Number of tokens that chose the expert and no expert of the group, i32[E · groups · parentGroupSize]. */
  readonly gained: Int32Array;
  /** Number of tokens that chose the expert and no other expert of its group, i32[E · parentGroupSize]. */
  readonly alone: Int32Array;
  /** Number of those tokens that also chose the second expert, in another group, i32[E · E · parentGroupSize]. */
  readonly aloneWith: Int32Array;
}

/**
 * Count the changes caused by swapping two experts A and B of different groups. A token that chose A but not B adds one
 * message to the group of B if it chose no expert there, and removes one from the group of A if it chose only A there.
 * A token that chose both or neither changes nothing, and a swap within a group changes nothing.
 *
 * Whether B was chosen matters only for messages that A removes: if a group has no chosen expert, B is not chosen
 * either. So one pass over choices, groups and pairs of choices of a token covers all pairs of experts.
 *
 * Cost: O(T · K · (groups + K)); the published count needs O(T · K · E).
 *
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591, the incremental counts of its expert swap.
 */
export const swapCounts = (
  routing: Routing,
  groupOf: Int32Array,
  { numGroups, parentGroupSize }: Pick<Exchange, "numGroups" | "parentGroupSize">,
  numRanks: number,
): SwapCounts => {
  const { numExperts, numChoices, choices } = routing;
  const gained = new Int32Array(numExperts * numGroups * parentGroupSize);
  const alone = new Int32Array(numExperts * parentGroupSize);
  const aloneWith = new Int32Array(numExperts * numExperts * parentGroupSize);
  const length = numTokens(routing);
  const numChosen = new Int32Array(numGroups);
  for (let token = 0; token < length; token++) {
    const offset = rankOfToken(token, length, numRanks) % parentGroupSize;
    const chosen = choices.subarray(token * numChoices, (token + 1) * numChoices);
    for (const expert of chosen) if (expert !== -1) numChosen[groupOf[expert]!]! += 1;
    for (const expert of chosen) {
      if (expert === -1) continue;
      for (let group = 0; group < numGroups; group++)
        if (numChosen[group] === 0) gained[(expert * numGroups + group) * parentGroupSize + offset]! += 1;
      if (numChosen[groupOf[expert]!] !== 1) continue;
      alone[expert * parentGroupSize + offset]! += 1;
      for (const other of chosen)
        if (other !== -1 && other !== expert) aloneWith[(expert * numExperts + other) * parentGroupSize + offset]! += 1;
    }
    for (const expert of chosen) if (expert !== -1) numChosen[groupOf[expert]!] = 0;
  }
  return { gained, alone, aloneWith };
};
