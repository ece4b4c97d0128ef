// Entry point for placing experts on ranks.
export { placeByEplb, type EplbPlacementOptions } from "./study/eplb.ts";
export type { ExchangeLevel, ExchangeLevels, ExchangeLine } from "./placement/exchange-levels.ts";
export { exchangeSeconds, type ExchangeSecondsOptions } from "./placement/exchange-seconds.ts";
export { type ExpertMove, expertMoves, type ExpertMovesOptions } from "./placement/expert-moves.ts";
export { type ExpertPlacement, placeInOrder } from "./placement/expert-placement.ts";
export { nearestPositions, permuteToNearestRanks, placementFromPositions } from "./placement/expert-positions.ts";
export {
  planExpertSwap,
  type PlanExpertSwapOptions,
  type ExpertSwap,
  swapExperts,
  type SwapExpertsOptions,
} from "./placement/expert-swap.ts";
export { type HeaviestFirstOptions, placeHeaviestFirst } from "./placement/heaviest-first.ts";
export { maxMovesPerPair, moveExperts, type MoveExpertsOptions } from "./placement/move-experts.ts";
export { moveGain, type MoveGain, type MoveGainOptions } from "./placement/move-gain.ts";
export { expertsOfRank, loadsOfRanks, slotOfExpert } from "./placement/placement-lookups.ts";
export { planShadowing, fasterMoeDefaults, type Shadowing, type ShadowingCosts } from "./study/shadowing.ts";
