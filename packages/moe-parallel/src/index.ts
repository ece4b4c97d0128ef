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
export { denseDispatcher, type DenseMetadata } from "./dispatch/dense-dispatcher.ts";
export type { Dispatched, DispatchSizes, TokenDispatcher } from "./dispatch/token-dispatcher.ts";
export { byBatchPriority, byChance, byChoice, byProbability, byToken, type DropOrder } from "./drop-order.ts";
export type { Experts, MlpExpertsOptions } from "./experts/experts.ts";
export { type GeluExpertParams, geluExperts } from "./experts/gelu-experts.ts";
export { type SwigluExpertParams, swigluExperts } from "./experts/swiglu-experts.ts";
export {
  type Choices,
  defineGate,
  type Gate,
  type GateContext,
  type Gated,
  type GateFigures,
  type GateRule,
  type Mixture,
} from "./gates/gate.ts";
export type { RouterOptions, RouterParams } from "./gates/router.ts";
export { switchGate, type SwitchGateOptions } from "./gates/switch-gate.ts";
export type { AuxiliaryLoss, RouterScores, ScoreNoise } from "./losses/auxiliary-loss.ts";
export {
  type MoeContext,
  type MoeFigures,
  moeLayer,
  type MoeLayer,
  type MoeLayerOptions,
  type MoeParams,
  type MoeReport,
} from "./moe-layer.ts";
export {
  fromRows,
  type Order,
  type OrderOptions,
  orderTokens,
  type RowLayout,
  toRows,
  type WeightNormalisation,
} from "./order.ts";
