import { ArgumentError } from "@skein/tensor-core";
import { checkRouting, numTokens, type Routing } from "../routing/routing.ts";
import { checkExchangeLevels, type Exchange, type ExchangeLevels } from "./exchange-levels.ts";
import { checkExpertPlacement, type ExpertPlacement } from "./expert-placement.ts";
import { slotOfExpert } from "./placement-lookups.ts";

/** Group of every expert, of groups of ranks that follow one another. */
export const groupsOfExperts = (placement: ExpertPlacement, numGroups: number): Int32Array => {
  const numSlots = placement.expertOfSlot.length / numGroups;
  return Int32Array.from(slotOfExpert(placement), (slot) => Math.floor(slot / numSlots));
};

/** The rank that a token comes from, where all ranks have equally many, rank by rank. */
export const rankOfToken = (token: number, numTokens: number, numRanks: number): number =>
  Math.floor((token * numRanks) / numTokens);

/**
 * Count the messages of an all-to-all: the tokens that each rank sends to each group. A token goes once to a group, of
 * whose experts it may have chosen several.
 *
 * Tokens come from all ranks, equally many from each, rank by rank. After the exchange with a level above, a token lies
 * with the rank that has the place of its first rank, in a group that it needs; so rank and receiver are told by place
 * and group.
 *
 * Cost: O(T · K).
 * @returns i32[groups · places], group by group.
 */
export const messageCounts = (
  routing: Routing,
  groupOf: Int32Array,
  { numGroups, numPlaces }: Pick<Exchange, "numGroups" | "numPlaces">,
  numRanks: number,
): Int32Array => {
  const counts = new Int32Array(numGroups * numPlaces);
  const lastToken = new Int32Array(numGroups).fill(-1);
  const length = numTokens(routing);
  const { choices, numChoices } = routing;
  for (let i = 0; i < choices.length; i++) {
    if (choices[i] === -1) continue;
    const token = Math.floor(i / numChoices);
    const group = groupOf[choices[i]!]!;
    if (lastToken[group] === token) continue;
    lastToken[group] = token;
    counts[group * numPlaces + (rankOfToken(token, length, numRanks) % numPlaces)]! += 1;
  }
  return counts;
};

/** @throws ArgumentError where routing, placement and levels do not belong together, or one is wrong by itself. */
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
      `${planner}: ${expertOfSlot.length} slots for ${numExperts} experts; what tokens choose between replicas is not known here, place every expert once`,
    );
  if (routing.numExperts !== numExperts)
    throw new ArgumentError(
      `${planner}: tokens choose of ${routing.numExperts} experts, ${numExperts} are placed; both are of one layer`,
    );
  if (levels.numRanks !== numRanks)
    throw new ArgumentError(
      `${planner}: levels of ${levels.numRanks} ranks, experts on ${numRanks}; measure the levels with as many ranks`,
    );
  if (numTokens(routing) % numRanks !== 0)
    throw new ArgumentError(
      `${planner}: ${numTokens(routing)} tokens of ${numRanks} ranks; join the routings of all ranks, equally long`,
    );
};
