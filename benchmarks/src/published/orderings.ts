import type { PredictedCell } from "./calibrate-cluster.ts";

/**
 * Closer than this two measurements stand in no order: most methods differ by up to 3 % between three measurements of
 * the same four GPUs.
 */
export const minDifference = 0.03;

/** Two methods of one model on one cluster, the first faster in the table. */
export interface ComparedPair {
  readonly faster: PredictedCell;
  readonly slower: PredictedCell;
  /** Time of the slower over that of the faster, as measured: above 1. */
  readonly measuredRatio: number;
  /** The same as predicted: below 1 where they stand in the wrong order. */
  readonly predictedRatio: number;
}

const predictedSeconds = ({ iterationSeconds, relativeError }: PredictedCell): number =>
  iterationSeconds * (1 + relativeError);

/** Set every two methods of a column against each other, where the table tells them apart. */
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
