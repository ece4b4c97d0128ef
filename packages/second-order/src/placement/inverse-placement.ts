import { ArgumentError } from "@skein/tensor-core";
import type { LayerSide } from "../statistics/statistic.ts";

/** Ranks that invert the factors of one layer, and ranks that use the inverses. */
export interface LayerPlacement {
  /** Column of the rank grid. The ranks of this column precondition the layer's gradient (gradient workers). */
  readonly column: number;
  /** Ranks that invert the layer's factor A (inputs). Likewise, `gradient`: factor G (output gradients). */
  readonly input: InverterRow;
  readonly gradient: InverterRow;
}

/**
 * Ranks of a column that invert a factor. A number: the row of the only rank that inverts the factor and sends the
 * inverse to the other ranks of the column. "everywhere": each rank inverts the full factor. "shared-out": each rank
 * inverts an equal share of the factor's blocks, and an all-gather distributes the inverted blocks.
 */
export type InverterRow = number | "everywhere" | "shared-out";

/**
 * Assignment of inversions and preconditioning to ranks. Plain data, equal on all ranks.
 *
 * P ranks form a grid of `workers` rows and P / workers columns, rank `row · columns + column`. The ranks of a column
 * share the inverses of its layers. Along a row, preconditioned gradients are sent to the ranks of other columns.
 *
 * Source: Pauloski et al. 2021 (KAISA), arXiv 2107.01739, for the grid.
 */
export interface InversePlacement {
  /** Number of rows: the number of ranks that precondition each layer. */
  readonly workers: number;
  /** Placement of each layer, by the path of its weight. */
  readonly layers: Readonly<Record<string, LayerPlacement>>;
}

/** Coordinates of a rank in the grid. */
export interface GridCoordinates {
  readonly row: number;
  readonly column: number;
}

export const numColumns = (numRanks: number, workers: number): number => numRanks / workers;

export const gridCoordinates = (rank: number, numRanks: number, workers: number): GridCoordinates => {
  const columns = numColumns(numRanks, workers);
  return { row: Math.floor(rank / columns), column: rank % columns };
};

const rankOfCoordinates = ({ row, column }: GridCoordinates, numRanks: number, workers: number): number =>
  row * numColumns(numRanks, workers) + column;

/**
 * Returns the rank that inverts a factor, if only one rank does. Undefined: all ranks of the factor's column invert the
 * factor.
 */
export const inverterOf = (
  { workers, layers }: InversePlacement,
  path: string,
  side: LayerSide,
  numRanks: number,
): number | undefined => {
  const { column, [side]: row } = layers[path]!;
  if (typeof row !== "number" && workers > 1) return undefined;
  return rankOfCoordinates({ row: typeof row === "number" ? row : 0, column }, numRanks, workers);
};

/**
 * Returns a placement in which all ranks invert all factors.
 * @example
 * ```ts
 * console.log(placeEverywhere(["a", "b"], 2).layers["a"]!.input); // everywhere
 * ```
 */
export const placeEverywhere = (paths: readonly string[], numRanks: number): InversePlacement => ({
  workers: numRanks,
  layers: Object.fromEntries(paths.map((path) => [path, { column: 0, input: "everywhere", gradient: "everywhere" }])),
});

/** Throws ArgumentError if a placement contains a rank that does not exist, or lacks a layer. */
export const checkPlacement = (
  { workers, layers }: InversePlacement,
  paths: readonly string[],
  numRanks: number,
): void => {
  if (!Number.isInteger(workers) || workers < 1 || numRanks % workers !== 0)
    throw new ArgumentError(
      `placement: ${workers} gradient workers do not divide ${numRanks} ranks; use a number that divides them`,
    );
  const columns = numColumns(numRanks, workers);
  const isRow = (row: InverterRow): boolean =>
    row === "everywhere" || row === "shared-out" || (Number.isInteger(row) && row >= 0 && row < workers);
  for (const path of paths) {
    const layerPlacement = Object.hasOwn(layers, path) ? layers[path] : undefined;
    if (layerPlacement === undefined)
      throw new ArgumentError(`placement: layer ${path} is not placed; place every layer`);
    if (
      !Number.isInteger(layerPlacement.column) ||
      layerPlacement.column < 0 ||
      layerPlacement.column >= columns ||
      !isRow(layerPlacement.input) ||
      !isRow(layerPlacement.gradient)
    )
      throw new ArgumentError(
        `placement: layer ${path} is at column ${layerPlacement.column}, rows ${layerPlacement.input} and ${layerPlacement.gradient}, of a grid of ${workers} rows and ${columns} columns; rows and columns are numbered from 0`,
      );
  }
};

/** Throws ArgumentError unless both factors of each layer are inverted by the same ranks. */
export const checkTogether = ({ layers }: InversePlacement, paths: readonly string[], why: string): void => {
  for (const path of paths) {
    const { input, gradient } = layers[path]!;
    if (input !== gradient)
      throw new ArgumentError(
        `placement: the factors of ${path} are inverted at rows ${input} and ${gradient}, but ${why}; place both factors of a layer on one rank`,
      );
  }
};

/**
 * Places layers round-robin: rank i mod P inverts both factors of layer i, preconditions it, and sends the result to
 * all other ranks.
 *
 * @example
 * ```ts
 * console.log(placeWholeLayers(["a", "b", "c"], 2).layers["b"]); // { column: 1, input: 0, gradient: 0 }
 * ```
 * Source: Zhang, Shi and Li 2022 (DP-KFAC), IEEE TCC.
 */
export const placeWholeLayers = (paths: readonly string[], numRanks: number): InversePlacement => ({
  workers: 1,
  layers: Object.fromEntries(paths.map((path, i) => [path, { column: i % numRanks, input: 0, gradient: 0 }])),
});

/**
 * Places layers round-robin over the columns of a grid. The ranks of a column share the blocks of the column's factors,
 * precondition its layers, and send the results to the other columns.
 *
 * @example
 * ```ts
 * console.log(placeByBlocks(["a", "b"], 4, 2).workers); // 2
 * ```
 * Source: the hybrid form of DP-KFAC, Zhang, Shi, Wang and Li 2022, arXiv 2206.15143.
 */
export const placeByBlocks = (paths: readonly string[], numRanks: number, workers: number): InversePlacement => ({
  workers,
  layers: Object.fromEntries(
    paths.map((path, i) => [
      path,
      { column: i % numColumns(numRanks, workers), input: "shared-out", gradient: "shared-out" },
    ]),
  ),
});

/**
 * Places layers round-robin: both factors of layer i on rank i mod P.
 *
 * @example
 * ```ts
 * console.log(placeRoundRobin(["a", "b", "c"], 2).layers["a"]); // { column: 0, input: 0, gradient: 0 }
 * ```
 * Source: Osawa et al. 2019, CVPR; Pauloski et al. 2020, SC.
 */
export const placeRoundRobin = (paths: readonly string[], numRanks: number): InversePlacement => ({
  workers: numRanks,
  layers: Object.fromEntries(
    paths.map((path, i) => [path, { column: 0, input: i % numRanks, gradient: i % numRanks }]),
  ),
});
