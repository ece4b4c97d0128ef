export {
  capacityByFactor,
  type CapacityByFactorOptions,
  capacityByMaximum,
  type CapacityByMaximumOptions,
  type Capacity,
  type CapacityRounding,
  type CapacityRule,
  type CapacitySizes,
} from "./capacity.ts";
export { denseDispatcher, type DenseDispatcherOptions, type DenseMetadata } from "./dispatch/dense-dispatcher.ts";
export { duplicateFreeDispatcher } from "./dispatch/duplicate-free-dispatcher.ts";
export { hierarchicalDispatcher } from "./dispatch/hierarchical-dispatcher.ts";
export type { LevelRoute, LevelMetadata } from "./dispatch/level-dispatcher.ts";
export type { Hop } from "./dispatch/level-exchange.ts";
export type { LevelOptions } from "./dispatch/levels.ts";
export { raggedDispatcher, type RaggedDispatcherOptions, type RaggedMetadata } from "./dispatch/ragged-dispatcher.ts";
export type {
  Dispatched,
  DispatchSizes,
  ExpertRows,
  ExpertWork,
  TokenDispatcher,
} from "./dispatch/token-dispatcher.ts";
export { byBatchPriority, byRandomOrder, byChoice, byProbability, byToken, type DropOrder } from "./drop-order.ts";
export type { Experts, MlpExpertsOptions } from "./experts/experts.ts";
export { type GeluExpertParams, geluExperts } from "./experts/gelu-experts.ts";
export { type SwigluExpertParams, swigluExperts } from "./experts/swiglu-experts.ts";
export {
  balancingBiasGate,
  type BalancingBiasGateOptions,
  type BalancingBiasState,
} from "./gates/balancing-bias-gate.ts";
export { cosineGate, type CosineGateOptions, type CosineParams } from "./gates/cosine-gate.ts";
export { expertChoiceGate, type ExpertChoiceGateOptions } from "./gates/expert-choice-gate.ts";
export {
  type ExpertChoices,
  defineGate,
  type Gate,
  type GateContext,
  type GateOutput,
  type GateFigures,
  type GateRule,
  type Mixture,
} from "./gates/gate.ts";
export { noisyTopKGate, type NoisyTopKGateOptions, type NoisyTopKParams } from "./gates/noisy-top-k-gate.ts";
export type { RouterOptions, RouterParams, TopKRouterOptions } from "./gates/router.ts";
export { sigmoidGate } from "./gates/sigmoid-gate.ts";
export { sinkhornGate, type SinkhornGateOptions } from "./gates/sinkhorn-gate.ts";
export { softGate, type SoftGateOptions, type SoftParams } from "./gates/soft-gate.ts";
export { switchGate, type SwitchGateOptions } from "./gates/switch-gate.ts";
export { isGateNode } from "./gate-scope.ts";
export type { AuxiliaryLoss, RouterScores, ScoreNoise, TokenSums, WholeBatch } from "./losses/auxiliary-loss.ts";
export { balanceLoss, type BalanceLossOptions } from "./losses/balance-loss.ts";
export { importanceLoadLoss, type ImportanceLoadLossOptions } from "./losses/importance-load-loss.ts";
export { zLoss, type ZLossOptions } from "./losses/z-loss.ts";
export { type MoeContext, moeLayer, type MoeLayer, type MoeLayerOptions, type MoeParams } from "./moe-layer.ts";
export type { MoeFigures, MoeLayerApplied, MoeLayerParts, MoeReport, MoeState } from "./moe-report.ts";
export { type Order, type OrderOptions, orderTokens, type WeightNormalisation } from "./order.ts";
export type { ExpertShards, ShardAxes } from "./shards/expert-shards.ts";
export { splitAfterGate, type SplitAfterGateOptions } from "./shards/split-after-gate.ts";
export { splitBeforeGate, type SplitBeforeGateOptions } from "./shards/split-before-gate.ts";
export { withoutSplit } from "./shards/without-split.ts";
export { fromRows, assignRows, type RowTokens, toRows } from "./rows.ts";
