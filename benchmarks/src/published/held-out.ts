import { median } from "@skein/measuring";
import { calibrateCluster, predictCells, type PredictedCell } from "./calibrate-cluster.ts";
import type { Cluster } from "./cluster.ts";
import { gpusPerNode } from "./cluster.ts";
import { type Cell, cells, type Method, modelNames, networks, worldSizes } from "./seven-methods.ts";

/** Methods whose predictions must have an error of at most 15 %. */
export const allReduceMethods: readonly Method[] = ["BSP-A2A", "WFBP-A2A", "MG-WFBP"];

/** Set of cells that a calibration does not use. */
export interface Fold {
  readonly title: string;
  readonly holds: (cell: Cell) => boolean;
}

const columns: readonly Fold[] = networks.flatMap((network) =>
  worldSizes
    .filter((worldSize) => worldSize > gpusPerNode)
    .map((size) => ({
      title: `${size} GPUs over ${network}`,
      holds: (cell: Cell) => cell.network === network && cell.worldSize === size,
    })),
);

/**
 * Sets of cells to hold out: each column; the three columns of one node, which repeat the same measurement; each model;
 * both BERT models on one network, so that only ResNet-50 determines the network's cost; and all cells of 16 GPUs, to
 * test an extrapolation by a factor of two.
 */
export const folds: readonly Fold[] = [
  ...columns,
  { title: "4 GPUs", holds: ({ worldSize }) => worldSize === gpusPerNode },
  ...modelNames.map((model) => ({ title: model, holds: (cell: Cell) => cell.model === model })),
  ...networks.map((network) => ({
    title: `both BERTs over ${network}`,
    holds: ({ model, network: own, worldSize }: Cell) =>
      own === network && worldSize > gpusPerNode && model !== "ResNet-50",
  })),
  { title: "16 GPUs", holds: ({ worldSize }) => worldSize === 16 },
];

/** Summary of the absolute relative errors of some cells. */
export interface ErrorSummary {
  readonly count: number;
  readonly median: number;
  readonly worst: PredictedCell;
}

export const summarizeErrors = (predicted: readonly PredictedCell[]): ErrorSummary => {
  const sorted = predicted.toSorted((a, b) => Math.abs(a.relativeError) - Math.abs(b.relativeError));
  return {
    count: sorted.length,
    median: median(sorted.map(({ relativeError }) => Math.abs(relativeError))),
    worst: sorted.at(-1)!,
  };
};

/** Predicts the cells of a fold for the given methods, by a calibration without the fold. */
export const predictFold = (
  { holds }: Fold,
  start: Cluster,
  methods: readonly Method[] = allReduceMethods,
): readonly PredictedCell[] => {
  const rows = cells.filter(({ method }) => methods.includes(method));
  const { cluster } = calibrateCluster(
    rows.filter((cell) => !holds(cell)),
    start,
  );
  return predictCells(cluster, rows.filter(holds));
};
