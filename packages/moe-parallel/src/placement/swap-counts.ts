import { numTokens, type Routing } from "../routing/routing.ts";
import { rankOfToken } from "./exchange-counts.ts";
import type { Exchange } from "./exchange-levels.ts";

/**
 * Token counts that determine how the message counts of one all-to-all change when an expert moves to another group.
 */
export interface SwapCounts {
  /**
   * Number of tokens that chose the expert but no expert of the group, by expert, group and index of the source rank in
   * its parent group: i32[E · groups · parentGroupSize].
   */
  readonly gained: Int32Array;
  /**
   * Number of tokens that chose the expert and no other expert of its group, by expert and index of the source rank in
   * its parent group: i32[E · parentGroupSize].
   */
  readonly alone: Int32Array;
  /**
   * Number of the tokens counted in `alone` that also chose a second expert, in another group, by expert, second expert
   * and index of the source rank in its parent group: i32[E · E · parentGroupSize].
   */
  readonly aloneWith: Int32Array;
}

/**
 * Counts the changes caused by swapping two experts A and B of different groups. A token that chose A but not B adds
 * one message to B's group if the token chose no expert of B's group, and removes one message from A's group if the
 * token chose only A in this group. A token that chose both experts or neither changes nothing, and a swap within a
 * group changes nothing.
 *
 * Whether B was chosen matters only for removed messages: a message is added only to a group without any chosen expert,
 * so B is not chosen. Therefore a single pass over the tokens' choices, groups and pairs of choices is enough for all
 * pairs of experts.
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
