import { repeatLastDoubling } from "@skein/cost-model/calibration";
import type { PredictedCell } from "./calibrate-cluster.ts";
import type { Cluster } from "./cluster.ts";
import { predictIteration, type Run } from "./predict-iteration.ts";
import { cells, singleGpu } from "./seven-methods.ts";

/** A prediction of a cluster that is twice as large as a measured one. */
export interface LargerPrediction extends Run {
  /** Samples per second by the model alone. */
  readonly modelSamplesPerSecond: number;
  /**
   * Samples per second corrected by the ratio of measured to predicted of the same run at half the size, so that
   * effects of a run that the model lacks are kept.
   */
  readonly samplesPerSecond: number;
  /** Baseline without a model: the last measured doubling of the same run, repeated. */
  readonly repeatedSamplesPerSecond: number;
}

/** Repeats the last doubling of a run of the table up to a number of GPUs. */
const repeatedSamplesPerSecond = ({ model, method, network, worldSize }: Run): number => {
  const measured = cells
    .filter((cell) => cell.model === model && cell.method === method && cell.network === network)
    .map(({ worldSize: ranks, iterationSeconds: stepSeconds }) => ({ ranks, stepSeconds }));
  return (worldSize * singleGpu[model].batch) / repeatLastDoubling(measured, worldSize);
};

/** Predicts runs on twice as many GPUs as the given measured and predicted runs. */
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
