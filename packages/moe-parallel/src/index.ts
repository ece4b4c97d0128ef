export { placeReplicated, type ReplicatedPlacementOptions } from "./placement/eplb.ts";
export type { ExchangeLevel, ExchangeLevels, ExchangeLine } from "./placement/exchange-levels.ts";
export { exchangeSeconds, type ExchangeSecondsOptions } from "./placement/exchange-seconds.ts";
export { type ExpertMove, expertMoves, type ExpertMovesOptions } from "./placement/expert-moves.ts";
export {
  checkExpertPlacement,
  type CheckExpertPlacementOptions,
  type ExpertPlacement,
  placeInOrder,
  withSwapped,
} from "./placement/expert-placement.ts";
export {
  chooseSwap,
  type ChooseSwapOptions,
  type ExpertSwap,
  swapExperts,
  type SwapExpertsOptions,
} from "./placement/expert-swap.ts";
export { type HeaviestFirstOptions, placeHeaviestFirst } from "./placement/heaviest-first.ts";
export { moveGain, type MoveGain, type MoveGainOptions } from "./placement/move-gain.ts";
export {
  expertsOfRank,
  loadsOfRanks,
  numSlotsPerRank,
  rankOfSlot,
  ranksOfExperts,
  slotOfExpert,
  slotsOfExperts,
} from "./placement/placement-lookups.ts";
export { chooseShadowed, fasterMoeSituation, type Shadowing, type ShadowingSituation } from "./placement/shadowing.ts";
export { swapSeconds, type SwapSecondsOptions } from "./placement/swap-seconds.ts";
export {
  addCounts,
  type CountMemory,
  type CountWindow,
  countWindow,
  decayedCounts,
  type DecayedCounts,
  meanCounts,
  rememberCounts,
} from "./routing/count-memory.ts";
export { checkRouting, expertCounts, joinRoutings, numTokens, type Routing } from "./routing/routing.ts";
export {
  recordRouting,
  type ReplayOptions,
  replayRoutings,
  type RoutedStep,
  type RoutingRecord,
  routingRecord,
  routingRecordFromJson,
  type RoutingRecordJson,
  routingRecordToJson,
} from "./routing/routing-record.ts";
