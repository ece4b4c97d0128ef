export { type MeasuredStep, repeatLastDoubling } from "./repeat-last-doubling.ts";
export { fitSlowdown } from "./fit-slowdown.ts";
export { median } from "./median.ts";
export {
  type FittedNetworkGrowth,
  fitNetworkGrowth,
  grownSecondsPerByte,
  type GrowthSample,
  type NetworkGrowth,
} from "./network-growth.ts";
export {
  fitCollectiveModel,
  type FittedCollectiveModel,
  fitPiecewiseCollectiveModel,
  type PiecewiseFitOptions,
} from "./fit-collective-model.ts";
export {
  allInOne,
  backwardSeconds,
  checkProfile,
  forwardSeconds,
  type GradientProfile,
  onePerTensor,
  type PlannedBucket,
  plannedBuckets,
  type ProfiledTensor,
  readySeconds,
} from "./gradient-profile.ts";
export { collectiveModelOfGroup } from "./group-collective-model.ts";
export {
  type CollectiveModel,
  collectiveSeconds,
  halfOf,
  lineAt,
  type LinearCollectiveModel,
  type CollectivePiece,
  type PiecewiseCollectiveModel,
} from "./collective-model.ts";
export { planSimultaneous } from "./planners/asc.ts";
export {
  bestTrial,
  dearSearch,
  type Observation,
  type SearchBound,
  suggestTrial,
  type SuggestTrialOptions,
} from "./planners/bayesian-optimisation.ts";
export { type ByteSchedulerOptions, partitionsOfSize, planByteScheduler } from "./simulated-only/byte-scheduler.ts";
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
export { duplicationRate, uniformDuplicationRate } from "./planners/moe/duplication-rate.ts";
export {
  type GradientLayer,
  type GradientPartition,
  type GradientPartitionOptions,
  type LayerGradients,
  planGradientPartition,
} from "./planners/moe/gradient-partition.ts";
export {
  type Hierarchy,
  type HierarchicalOptions,
  type HierarchicalPlan,
  type HierarchyLevel,
  plainAllToAllSeconds,
  planHierarchicalAllToAll,
} from "./planners/moe/hierarchical-all-to-all.ts";
export {
  type BackwardSegment,
  type IdleBuckets,
  planIdleBuckets,
} from "./planners/moe/idle-buckets.ts";
export {
  backwardOf,
  type ChunkSeconds,
  chunkSeconds,
  type LayerCollective,
  type MoeLayerPass,
} from "./planners/moe/layer-pass.ts";
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
export { type PipelineBound, pipelineCase } from "./planners/moe/pipeline-case.ts";
export {
  capacityMultiple,
  type PipelineChoices,
  type PipelinePlan,
  planPipeline,
} from "./planners/moe/pipeline-degree.ts";
export { allCopies, distinctCopies, type ExpertRouting, uniformRouting } from "./planners/moe/routing.ts";
export { smoothMaximum } from "./planners/moe/smooth-maximum.ts";
export { type Partition, type PartitionPlan, priorityTimeline } from "./simulated-only/priority-timeline.ts";
export { type Slowdown, simultaneousTimeline, twoAtOnce } from "./simultaneous-timeline.ts";
export { type CollectiveSpan, overlapBound, type Timeline, timelineOf } from "./timeline.ts";
export { gigabitsPerSecond, kibibytes, mebibytes, microseconds, milliseconds } from "./units.ts";
export type {
  CalibratedRun,
  ClusterLinks,
  ComputeType,
  Contention,
  ComputeDevice,
  HardwareCalibration,
  HardwareFile,
  MeasuredEfficiency,
  RunningCosts,
  Topology,
  TransferTimes,
} from "./hardware/hardware.ts";
export { hostsOfGroup } from "./hardware/hosts-of-group.ts";
export { linksOfGroup } from "./hardware/links-of-group.ts";
export { peakFlops, type Roofline, roofline, type Work } from "./hardware/roofline.ts";
export {
  type CollectivePrice,
  type CollectivePricer,
  collectivePricer,
  collectivePricers,
} from "./pricing/collective-price.ts";
export { type Basis, type Efficiency, efficiencyLookup } from "./pricing/efficiency.ts";
export { type KernelPrice, type KernelPricer, kernelPricer, nodeWork } from "./pricing/kernel-price.ts";
export { type KernelSample, learnEfficiencies } from "./pricing/learn-efficiencies.ts";
export {
  computeSeconds,
  isKernel,
  isStart,
  type KernelStep,
  type PreparedGraph,
  type StartStep,
  type StepHardware,
  type StepProgram,
  stepProgram,
  type WaitStep,
} from "./pricing/step-program.ts";
export { kernelsDuringCollectives, overlapsOf } from "./pricing/overlaps.ts";
export { bucketOfScope } from "./pricing/exchange-steps.ts";
export { codecSeconds, type PricedExchange, pricedExchange, sentBytesOf } from "./pricing/priced-exchange.ts";
export { foldKernels } from "./pricing/fold-kernels.ts";
export { type HalvesRebucketing, rebucketHalves } from "./pricing/rebucket-halves.ts";
export { reprice } from "./pricing/reprice.ts";
export { rebucket, type Rebucketing } from "./pricing/rebucket.ts";
export { type GroupExchange, withExchanges } from "./pricing/with-exchanges.ts";
export { stepTasks } from "./pricing/step-tasks.ts";
export { hardwareNamed, shippedHardware } from "./hardware/shipped/index.ts";
export {
  type ContendedSample,
  contendedSeconds,
  fitContention,
  type FittedContention,
} from "./calibration/fit-contention.ts";
export { fitLeastSquares, type LeastSquaresFit, type LeastSquaresOptions } from "./calibration/fit-least-squares.ts";
export type { JitterOptions } from "./simulation/jitter.ts";
export {
  simulate,
  type SimulatedCollective,
  type SimulatedStep,
  type SimulationOptions,
} from "./simulation/simulate.ts";
export { type ScheduleTimes, simulateSchedule, type SimulatedCollectiveSize } from "./simulation/simulate-schedule.ts";
export type {
  CollectiveTask,
  ComputeTask,
  LinkStream,
  CollectivePhase,
  Program,
  SimulatedWorld,
  SimulatedTask,
  WaitTask,
} from "./simulation/task.ts";
