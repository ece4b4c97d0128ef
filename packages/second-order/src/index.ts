export { inverseRoot, type InverseRootOptions } from "./inverse/inverse-root.ts";
export { newtonInverseRoot, type NewtonInverseRootOptions } from "./inverse/newton-inverse-root.ts";
export {
  muonCoefficients,
  newtonSchulz,
  type NewtonSchulzOptions,
  type QuinticCoefficients,
} from "./inverse/newton-schulz.ts";
export {
  bucketsInOrder,
  meanOverParts,
  type MeanStatisticsOptions,
  meanStatistics,
  ownStatistics,
  sideName,
  type Statistics,
  type StatisticsCollector,
} from "./statistics/collect.ts";
export { type CovarianceOptions, covarianceStatistic, factorShape, type Positions } from "./statistics/covariances.ts";
export type { FirstOrderWeight, Layer, ModelLayers } from "./statistics/layer.ts";
export { inputMeanStatistic, meanStatistic } from "./statistics/means.ts";
export { findLayers, observeLayers, type ObserveLayersOptions } from "./statistics/observe-layers.ts";
export type { LayerSide, LayerStatistic, Statistic } from "./statistics/statistic.ts";
export type { CurvatureFigures } from "./curvature-figures.ts";
export { eva, evaF, type EvaOptions, type EvaState } from "./eva.ts";
export { evaS, type EvaSOptions, type EvaSState } from "./eva-s.ts";
export { choleskyInverse } from "./kfac/cholesky-inverse.ts";
export { eigenInverse } from "./kfac/eigen-inverse.ts";
export type { DerivedFactor, FactorInverse, Sides } from "./kfac/factor-inverse.ts";
export { kfac, type KfacOptions, type KfacState } from "./kfac/kfac.ts";
export type { KfacDistribution } from "./kfac/rank-role.ts";
export { type FactorTimes, placeBalanced } from "./placement/balanced-broadcast.ts";
export { gradientWorkers, type GreedyOptions, placeGreedily } from "./placement/greedy.ts";
export {
  type InversePlacement,
  type InverterRow,
  type LayerPlacement,
  placeByBlocks,
  placeEverywhere,
  placeRoundRobin,
  placeWholeLayers,
} from "./placement/inverse-placement.ts";
export {
  planKfacForms,
  type PlanKfacFormsOptions,
  equivalentForms,
  type KfacForm,
  placeForm,
  type PredictedForm,
} from "./planning/choose-form.ts";
export {
  type ComputedFactor,
  computedFactors,
  type FormPlacement,
  formStages,
  type FormStages,
  type RefreshIntervals,
  type StageOptions,
} from "./planning/form-stages.ts";
export { factorElements, type PlannedLayer, type StageTimes } from "./planning/stage-times.ts";
export type { StackDims } from "./matrices.ts";
export type { ReplicaAxis } from "./replica-axis.ts";
export { muon, type MuonOptions, type MuonState, orthogonaliseUpdates, type OrthogonaliseOptions } from "./muon.ts";
export type { Preconditioner } from "./preconditioner.ts";
export { shampoo, type ShampooOptions, type ShampooSides, type ShampooState } from "./shampoo.ts";
export {
  scaleBySoap,
  soap,
  type SoapOptimizerOptions,
  type SoapOptions,
  type SoapSides,
  type SoapState,
} from "./soap.ts";
export {
  lamb,
  type LambOptions,
  lars,
  type LarsOptions,
  scaleByTrustRatio,
  type TrustRatioOptions,
} from "./trust-ratio.ts";
export type { UpdateSizeOptions } from "./update-size.ts";
