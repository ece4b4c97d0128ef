import { ArgumentError } from "@skein/tensor-core";
import { checkRouting, numTokens, type Routing } from "../routing/routing.ts";
import { checkExchangeLevels, type Exchange, type ExchangeLevels } from "./exchange-levels.ts";
import { checkExpertPlacement, type ExpertPlacement } from "./expert-placement.ts";
import { slotOfExpert } from "./placement-lookups.ts";

/** Returns the group of each expert, for groups of consecutive ranks. */
export const groupsOfExperts = (placement: ExpertPlacement, numGroups: number): Int32Array => {
  const numSlots = placement.expertOfSlot.length / numGroups;
  return Int32Array.from(slotOfExpert(placement), (slot) => Math.floor(slot / numSlots));
};

/** Returns the source rank of a token. Tokens are in rank order, with equal numbers per rank. */
export const rankOfToken = (token: number, numTokens: number, numRanks: number): number =>
  Math.floor((token * numRanks) / numTokens);

/**
 * Counts the messages of an all-to-all: the number of tokens that each rank sends to each group. A token is sent only
 * once to a group, even if the token chose several of the group's experts.
 *
 * All ranks have the same number of tokens, in rank order. After the exchange at a coarser level, a token is on a rank
 * with the same index within its group as the token's source rank. So an index within the group identifies the sender,
 * and a group identifies the receiver.
 *
 * Cost: O(T · K).
 * @returns counts i32[groups · parentGroupSize], group by group.
 */
export const messageCounts = (
  routing: Routing,
  groupOf: Int32Array,
  { numGroups, parentGroupSize }: Pick<Exchange, "numGroups" | "parentGroupSize">,
  numRanks: number,
): Int32Array => {
  const counts = new Int32Array(numGroups * parentGroupSize);
  const lastToken = new Int32Array(numGroups).fill(-1);
  const length = numTokens(routing);
  const { choices, numChoices } = routing;
  for (let i = 0; i < choices.length; i++) {
    if (choices[i] === -1) continue;
    const token = Math.floor(i / numChoices);
    const group = groupOf[choices[i]!]!;
    if (lastToken[group] === token) continue;
    lastToken[group] = token;
    counts[group * parentGroupSize + (rankOfToken(token, length, numRanks) % parentGroupSize)]! += 1;
  }
  return counts;
};

/**
 * Throws ArgumentError if the routing, the placement or the levels of an exchange prediction are invalid, or do not
 * match.
 */
export const checkExchangeInputs = (
  planner: string,
  routing: Routing,
  placement: ExpertPlacement,
  levels: ExchangeLevels,
): void => {
  checkRouting(routing);
  checkExpertPlacement(placement);
  checkExchangeLevels(levels);
  const { numExperts, numRanks, expertOfSlot } = placement;
  if (expertOfSlot.length !== numExperts)
    throw new ArgumentError(
      `${planner}: ${expertOfSlot.length} slots for ${numExperts} experts; the choice between replicas is not known, place every expert once`,
    );
  if (routing.numExperts !== numExperts)
    throw new ArgumentError(
      `${planner}: tokens choose from ${routing.numExperts} experts, but ${numExperts} are placed; use a routing and a placement of the same layer`,
    );
  if (levels.numRanks !== numRanks)
    throw new ArgumentError(
      `${planner}: levels of ${levels.numRanks} ranks, but experts on ${numRanks} ranks; measure the levels with the same number of ranks`,
    );
  if (numTokens(routing) % numRanks !== 0)
    throw new ArgumentError(
      `${planner}: ${numTokens(routing)} tokens are not divisible by ${numRanks} ranks; join the routings of all ranks, with equal numbers of tokens`,
    );
};
