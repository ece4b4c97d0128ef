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
   * Samples per second predicted by the model and multiplied by measured / predicted of the same run at half the size.
   * The factor covers effects that the model does not include.
   */
  readonly samplesPerSecond: number;
  /** Samples per second without a model: the speed-up of the last measured doubling, applied again. */
  readonly repeatedSamplesPerSecond: number;
}

/** Returns samples per second if the last measured doubling of GPUs is repeated until `worldSize`. */
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
