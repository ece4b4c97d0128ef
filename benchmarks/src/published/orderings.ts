import type { PredictedCell } from "./calibrate-cluster.ts";

/**
 * Smallest relative difference that orders two measurements: three measurements of the same four GPUs differ by up to 3
 * % for most methods.
 */
export const minDifference = 0.03;

/** Two methods of one model on one cluster, the first faster in the table. */
export interface ComparedPair {
  readonly faster: PredictedCell;
  readonly slower: PredictedCell;
  /** Measured time of the slower method over that of the faster: above 1. */
  readonly measuredRatio: number;
  /** Predicted time ratio of the same pair: below 1 if the predicted order is wrong. */
  readonly predictedRatio: number;
}

const predictedSeconds = ({ iterationSeconds, relativeError }: PredictedCell): number =>
  iterationSeconds * (1 + relativeError);

/** Compares every two methods of a column whose measurements differ by more than the smallest difference. */
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
