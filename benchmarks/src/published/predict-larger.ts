import { repeatLastDoubling } from "@skein/cost-model/calibration";
import type { PredictedCell } from "./calibrate-cluster.ts";
import type { Cluster } from "./cluster.ts";
import { predictIteration, type Run } from "./predict-iteration.ts";
import { cells, singleGpu } from "./seven-methods.ts";

/** Prediction for a cluster that is twice as large as a measured cluster. */
export interface LargerPrediction extends Run {
  /** Samples per second predicted by the model alone. */
  readonly modelSamplesPerSecond: number;
  /**
   * Samples per second predicted by the model, times a correction: measured / predicted of the same run on half as many
   * GPUs. The correction covers effects that the model does not include.
   */
  readonly samplesPerSecond: number;
  /**
   * Samples per second of the baseline without a model, which repeats the speed-up of the last measured doubling of
   * GPUs.
   */
  readonly repeatedSamplesPerSecond: number;
}

/**
 * Returns the samples per second of the baseline: each doubling of GPUs up to `worldSize` has the speed-up of the last
 * measured doubling.
 */
const repeatedSamplesPerSecond = ({ model, method, network, worldSize }: Run): number => {
  const measured = cells
    .filter((cell) => cell.model === model && cell.method === method && cell.network === network)
    .map(({ worldSize: ranks, iterationSeconds: stepSeconds }) => ({ ranks, stepSeconds }));
  return (worldSize * singleGpu[model].batch) / repeatLastDoubling(measured, worldSize);
};

/** Predicts runs on twice as many GPUs as the given runs have. */
export const predictLarger = (cluster: Cluster, before: readonly PredictedCell[]): readonly LargerPrediction[] =>
  before.map(({ model, method, network, worldSize, relativeError }) => {
    const run = { model, method, network, worldSize: 2 * worldSize };
    const modelSamplesPerSecond = (run.worldSize * singleGpu[model].batch) / predictIteration(cluster, run);
    return {
      ...run,
      modelSamplesPerSecond,
      samplesPerSecond: modelSamplesPerSecond * (1 + relativeError),
      repeatedSamplesPerSecond: repeatedSamplesPerSecond(run),
    };
  });
