import { numTokens, type Routing } from "../routing/routing.ts";
import { rankOfToken } from "./exchange-counts.ts";
import type { Exchange } from "./exchange-levels.ts";

/** How the messages of one all-to-all would change with the place of any expert. */
export interface SwapCounts {
  /** i32[E · groups · places]: tokens that chose the expert and no expert of the group. */
  readonly gained: Int32Array;
  /** i32[E · places]: tokens that chose the expert and no other of its group. */
  readonly alone: Int32Array;
  /** i32[E · E · places]: of those, the ones that chose the second expert too, in another group. */
  readonly aloneWith: Int32Array;
}

/**
 * Count what swapping two experts A and B of different groups changes. A token that chose A and not B adds one to the
 * group of B if it chose none there, and takes one from the group of A if it chose none but A there. A token that chose
 * both or neither changes nothing, nor does a swap within a group.
 *
 * Whether B was chosen matters only for what A leaves: where a group has no chosen expert, B is none either. So a pass
 * over choices, groups and pairs of choices of a token does for all pairs of experts.
 *
 * Cost: O(T · K · (groups + K)), where the published count takes O(T · K · E).
 *
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591, the incremental counts of its expert swap.
 */
export const swapCounts = (
  routing: Routing,
  groupOf: Int32Array,
  { numGroups, numPlaces }: Pick<Exchange, "numGroups" | "numPlaces">,
  numRanks: number,
): SwapCounts => {
  const { numExperts, numChoices, choices } = routing;
  const gained = new Int32Array(numExperts * numGroups * numPlaces);
  const alone = new Int32Array(numExperts * numPlaces);
  const aloneWith = new Int32Array(numExperts * numExperts * numPlaces);
  const length = numTokens(routing);
  const numChosen = new Int32Array(numGroups);
  for (let token = 0; token < length; token++) {
    const place = rankOfToken(token, length, numRanks) % numPlaces;
    const chosen = choices.subarray(token * numChoices, (token + 1) * numChoices);
    for (const expert of chosen) if (expert !== -1) numChosen[groupOf[expert]!]! += 1;
    for (const expert of chosen) {
      if (expert === -1) continue;
      for (let group = 0; group < numGroups; group++)
        if (numChosen[group] === 0) gained[(expert * numGroups + group) * numPlaces + place]! += 1;
      if (numChosen[groupOf[expert]!] !== 1) continue;
      alone[expert * numPlaces + place]! += 1;
      for (const other of chosen)
        if (other !== -1 && other !== expert) aloneWith[(expert * numExperts + other) * numPlaces + place]! += 1;
    }
    for (const expert of chosen) if (expert !== -1) numChosen[groupOf[expert]!] = 0;
  }
  return { gained, alone, aloneWith };
};
