// Entry point for fitting model parameters to measurements.
export { type MeasuredStep, repeatLastDoubling } from "./repeat-last-doubling.ts";
export { fitSlowdown } from "./fit-slowdown.ts";
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
export { type KernelSample, learnEfficiencies } from "./pricing/learn-efficiencies.ts";
export {
  type ContendedSample,
  contendedSeconds,
  fitContention,
  type FittedContention,
} from "./calibration/fit-contention.ts";
export { fitLeastSquares, type LeastSquaresFit, type LeastSquaresOptions } from "./calibration/fit-least-squares.ts";
