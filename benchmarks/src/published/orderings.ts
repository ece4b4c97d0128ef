import type { PredictedCell } from "./calibrate-cluster.ts";

/**
 * Minimum relative difference of two measurements whose order is compared with predictions. Smaller differences may be
 * noise: three measurements on the same four GPUs differ by up to 3 % for most methods.
 */
export const minDifference = 0.03;

/** Two methods for one model on one cluster, with their order in the published table. */
export interface ComparedPair {
  readonly faster: PredictedCell;
  readonly slower: PredictedCell;
  /** Measured time of the slower method / measured time of the faster method; above 1. */
  readonly measuredRatio: number;
  /**
   * Predicted time of the slower method / predicted time of the faster method; below 1 if the predicted order is wrong.
   */
  readonly predictedRatio: number;
}

const predictedSeconds = ({ iterationSeconds, relativeError }: PredictedCell): number =>
  iterationSeconds * (1 + relativeError);

/** Compares all pairs of methods in a column whose measurements differ by more than `minDifference`. */
export const comparePairs = (predicted: readonly PredictedCell[]): readonly ComparedPair[] =>
  [...Map.groupBy(predicted, ({ model, network, worldSize }) => [model, network, worldSize].join(" ")).values()]
    .flatMap((column) => column.flatMap((faster) => column.map((slower) => ({ faster, slower }))))
    .filter(({ faster, slower }) => slower.iterationSeconds > faster.iterationSeconds * (1 + minDifference))
    .map(({ faster, slower }) => ({
      faster,
      slower,
      measuredRatio: slower.iterationSeconds / faster.iterationSeconds,
      predictedRatio: predictedSeconds(slower) / predictedSeconds(faster),
    }));

export const isMisordered = ({ predictedRatio }: ComparedPair): boolean => predictedRatio < 1;
