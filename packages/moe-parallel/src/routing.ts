// Entry point for recording and counting expert choices.
export {
  type CountHistory,
  type CountWindow,
  countWindow,
  decayedCounts,
  type DecayedCounts,
  meanCounts,
  recordCounts,
} from "./routing/count-history.ts";
export type { LoadHistory } from "./routing/load-history.ts";
export { checkRouting, expertCounts, numTokens, type Routing, singleChoices } from "./routing/routing.ts";
export {
  recordRouting,
  type ReplayRoutingsOptions,
  replayRoutings,
  type RoutedStep,
  type RoutingRecord,
  routingRecord,
  routingRecordFromJson,
  type RoutingRecordJson,
  routingRecordToJson,
} from "./routing/routing-record.ts";
