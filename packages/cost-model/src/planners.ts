// Entry point for planners of buckets, densities, and expert layers.
export { planSimultaneous } from "./planners/asc.ts";
export {
  bestTrial,
  type Observation,
  type SearchBound,
  suggestTrial,
  type SuggestTrialOptions,
} from "./planners/bayesian-optimisation.ts";
export { type ByteSchedulerOptions, planByteScheduler } from "./simulated-only/byte-scheduler.ts";
export type { MergeClass, MergeOptions } from "./planners/merge-class.ts";
export { dearTimeline, type DearTimelineOptions, type HalvesModel, halvesOf, planDear } from "./planners/dear.ts";
export {
  type FactorBuckets,
  factorProfile,
  planFactorBuckets,
  type ProfiledFactor,
} from "./planners/factor-buckets.ts";
export { type LagsOptions, planLags, type TensorDensity } from "./planners/lags.ts";
export { planMgWfbpOptimal } from "./planners/mg-wfbp-exact.ts";
export { planMgWfbp } from "./planners/mg-wfbp.ts";
export {
  type SeparateBackward,
  backwardChunksOf,
  type DispatchChoice,
  type DispatchedLayer,
  type DispatchLinks,
  dispatchSeconds,
  type DispatchWay,
  type LayerComputing,
  type PredictedDispatch,
  rankDispatches,
} from "./planners/moe/dispatch-way.ts";
export { uniformDuplicationRate } from "./planners/moe/duplication-rate.ts";
export {
  type GradientLayer,
  type GradientPartition,
  type GradientPartitionOptions,
  type LayerGradients,
  planGradientPartition,
} from "./study/gradient-partition.ts";
export { type BackwardSegment, type IdleBuckets, planIdleBuckets } from "./planners/moe/idle-buckets.ts";
export type { ChunkSeconds, LayerCollective, MoeLayerPass } from "./planners/moe/layer-pass.ts";
export {
  type IntraNodeOrder,
  type LayerSchedule,
  type LayerSpan,
  type LayerTimeline,
  layerTimeline,
} from "./planners/moe/layer-timeline.ts";
export {
  planParmSchedule,
  type ParmCost,
  parmCosts,
  type ParmLayer,
  type ParmModels,
  type ParmSchedule,
} from "./planners/moe/parm.ts";
export { type PipelineBound, pipelineCase } from "./study/pipeline-case.ts";
export { type PipelineChoices, type PipelinePlan, planPipeline } from "./planners/moe/pipeline-degree.ts";
export { type Partition, type PartitionPlan, priorityTimeline } from "./simulated-only/priority-timeline.ts";
