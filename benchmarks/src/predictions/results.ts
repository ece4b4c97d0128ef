import {
  calibrateCluster,
  type Calibration,
  nominalCluster,
  type PredictedCell,
  predictCells,
} from "../published/calibrate-cluster.ts";
import { allReduceMethods, type Fold, folds, predictFold } from "../published/held-out.ts";
import { type LargerPrediction, predictLarger } from "../published/predict-larger.ts";
import { cells, type Method } from "../published/seven-methods.ts";

/** Predictions for a held-out set of cells, by a calibration that did not use these cells. */
export interface HeldOut {
  readonly fold: Fold;
  readonly predicted: readonly PredictedCell[];
}

/** Prediction of a measured run on 16 GPUs from runs on 4 and 8 GPUs, with relative errors of the iteration time. */
export interface Rehearsed {
  readonly cell: PredictedCell;
  readonly byModel: number;
  readonly withRatio: number;
  /** Error of the baseline, which assumes that the time ratio from 8 to 16 GPUs equals the ratio from 4 to 8 GPUs. */
  readonly repeated: number;
}

/** All results that the page shows about the published table with seven methods. */
export interface TableResults {
  readonly calibration: Calibration;
  readonly predicted: readonly PredictedCell[];
  readonly heldOut: readonly HeldOut[];
  readonly rehearsed: readonly Rehearsed[];
  readonly larger: readonly LargerPrediction[];
}

/**
 * Predicts 16 GPUs from at most 8 GPUs, to test the method that predicts 32 GPUs. Calibrates on at most 8 GPUs, and
 * corrects the predictions by the errors at 8 GPUs.
 */
const rehearse = (): readonly Rehearsed[] => {
  const known = cells.filter(({ worldSize }) => worldSize < 16);
  const { cluster } = calibrateCluster(known, nominalCluster);
  const predicted = predictLarger(
    cluster,
    predictCells(
      cluster,
      known.filter(({ worldSize }) => worldSize === 8),
    ),
  );
  return predictCells(
    cluster,
    cells.filter(({ worldSize }) => worldSize === 16),
  ).map((cell) => {
    const own = predicted.find(
      ({ model, method, network }) => model === cell.model && method === cell.method && network === cell.network,
    )!;
    return {
      cell,
      byModel: cell.relativeError,
      withRatio: cell.samplesPerSecond / own.samplesPerSecond - 1,
      repeated: cell.samplesPerSecond / own.repeatedSamplesPerSecond - 1,
    };
  });
};

/** Calibrates on all cells, and predicts held-out cells. Takes about a minute on one core. */
export const findTableResults = (progress: (line: string) => void): TableResults => {
  progress("calibrating on all cells");
  const calibration = calibrateCluster(cells, nominalCluster);
  const { cluster } = calibration;
  const predicted = predictCells(cluster, cells);
  const heldOut = folds.map((fold) => {
    progress(`holding out ${fold.title}`);
    return { fold, predicted: predictFold(fold, nominalCluster, allReduceMethods) };
  });
  progress("predicting 16 GPUs from 4 and 8");
  const of16 = predicted.filter(({ worldSize }) => worldSize === 16);
  return { calibration, predicted, heldOut, rehearsed: rehearse(), larger: predictLarger(cluster, of16) };
};

/** Whether the method's predictions must be within 15 % of the measurements. */
export const isAsked = ({ method }: { readonly method: Method }): boolean => allReduceMethods.includes(method);
