export { factorBucketBytes } from "./building/build-curvature.ts";
export { buildCompression, firstTunedBytes } from "./building/build-exchange.ts";
export { buildExpert, buildExperts, capacityOf } from "./building/build-experts.ts";
export { buildLearningRate, type ScheduledSteps, scheduleStepsOf } from "./building/build-learning-rate.ts";
export { namesOf, withCheckpointClasses } from "./building/class-names.ts";
export type { Curvature, PlannedCurvature } from "./building/curvature.ts";
export { DamagedSamples } from "./building/damaged-samples.ts";
export { frozenPaths, trainedOf, withParameters } from "./building/frozen.ts";
export { requireSmoothing, withSmoothing } from "./building/label-smoothing.ts";
export { limitSamples } from "./building/limit-samples.ts";
export type { OwnOptimizer, OwnParts } from "./building/own-step-parts.ts";
export { parameterGroups } from "./building/parameter-groups.ts";
export { gatherSlices, sliceOfWhole, sliceShape, wholeOfGathered } from "./building/sharded-optimizer.ts";
export { stackDimsOf } from "./building/stacked-parameters.ts";
export { mobyDickData, textData, tokenData } from "./building/text-data.ts";
export { validationSplit } from "./building/validation-split.ts";
export { type Chance, chanceOf, coverageRemarks } from "./evaluation/class-coverage.ts";
export {
  bestAfter,
  bestBefore,
  comparesEvaluations,
  type Comparison,
  comparisonOf,
  endsEarly,
} from "./evaluation/compare-evaluations.ts";
export { evaluationBatch } from "./evaluation/evaluation-batch.ts";
export { bitsOf, comparedFigures, evaluatedOn, evaluationFigures } from "./evaluation/compute-figures.ts";
export { type EvaluationSums, totalSums } from "./evaluation/evaluation-sums.ts";
export { inLogicalOrder, type TrainedWeights } from "./placement/logical-experts.ts";
export { rePlacement } from "./placement/re-placement.ts";
export { routingRecorder } from "./placement/routing-recorder.ts";
export { type CurvaturePlan, curvaturePlanSchema } from "./plans/curvature-plan.ts";
export {
  type BucketedPlan,
  type ExchangePlan,
  exchangePlanSchema,
  isDue,
  isExchangePlanned,
  isPlanned,
  type PlanBasis,
  type PlanName,
  planNames,
} from "./plans/exchange-plan.ts";
export {
  type ExpertSchedulePlan,
  expertSchedulePlanSchema,
  isAllowed,
  isSchedulePlanned,
  withPlannedSchedule,
} from "./plans/expert-schedule-plan.ts";
export {
  dispatchChoices,
  exchangeLevels,
  type ExpertsPlan,
  isExpertsPlanFor,
  isExpertsPlanned,
  isSameChoice,
  maxChunksOf,
  settledExperts,
} from "./plans/experts-plan.ts";
export { boundPlans, keptPlan, planBasis, type PlanWorld, wantedPlan } from "./plans/kept-plan.ts";
export { idlePlacement } from "./plans/movable-experts.ts";
export { savedPlan } from "./plans/saved-plan.ts";
export { CompiledSteps, passesFor } from "./step/compiled-steps.ts";
export { deferredPart } from "./step/deferred-step.ts";
export { type EvaluatedState, evaluationOrder, makeEvaluation } from "./step/evaluate.ts";
export { LiveState, type StepFigures } from "./step/live-state.ts";
export { accumulate, exchangeOptions, lookAhead, type PassAhead } from "./step/loss-and-gradients.ts";
export { findDrift, replicaCheck } from "./step/replica-check.ts";
export { stepOverParts } from "./step/step-over-parts.ts";
export {
  buildParts,
  type DeviceState,
  initState,
  type Layout,
  learnedParams,
  type Parts,
  type PartsInput,
  type SavedLeaves,
  scheduleOffsetOf,
  splitLeaves,
  stateSharding,
  stateSpecs,
  stepKindAt,
  totalStepsOf,
  type TrainState,
} from "./step/train-state.ts";
export { trainStep } from "./step/train-step.ts";
export { numUpdateFigures, type UpdateFigures } from "./step/update-figures.ts";
export { forwardPass, namedResults, type Weights } from "./task/forward-pass.ts";
export { resultSpecs } from "./task/result-specs.ts";
export { type SampleKind, sampleKindOf, samplePassOf } from "./task/sample-pass.ts";
export {
  type AnyModel,
  batchSpecs,
  type BatchTree,
  type DataSet,
  isLabelled,
  layoutOf,
  type OwnModel,
  type Prediction,
  type Task,
  taskOf,
  type TrainingData,
} from "./task/task.ts";
export { withBatch } from "./task/watched-batch.ts";
