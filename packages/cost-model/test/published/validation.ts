// The door of the published measurements and of what is predicted of them: tests here and the page of predictions
// (benchmarks) read the same.
export {
  type LogName,
  logNames,
  type PredictedLog,
  predictLog,
  type ReplayedLog,
  replayLog,
  trainingModels,
} from "./b-caffe-predictions.ts";
export {
  calibrateCluster,
  type Calibration,
  nominalCluster,
  type PredictedCell,
  predictCells,
  stages,
} from "./calibrate-cluster.ts";
export { calibratedCluster } from "./calibrated-cluster.ts";
export { linkAlone, meanOfFlows, slowestOfFlows, worstOfFlows } from "./contention.ts";
export { type Fold, folds, allReduceMethods, predictFold, summarizeErrors } from "./held-out.ts";
export { comparePairs, isMisordered, leastDifference } from "./orderings.ts";
export { type LargerPrediction, predictLarger } from "./predict-larger.ts";
export { cells, type Method, methods, modelNames, type Network, networks, worldSizes } from "./seven-methods.ts";
export { fitContention } from "../../src/calibration/fit-contention.ts";
export { predictInTurn, predictSimultaneous, simultaneousModels, simultaneousRows } from "./simultaneous.ts";
