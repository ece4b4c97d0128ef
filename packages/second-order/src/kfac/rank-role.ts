import { meshCoordinate } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import {
  checkPlacement,
  type GridCoordinates,
  gridCoordinates,
  inverterOf,
  type InversePlacement,
  placeEverywhere,
} from "../placement/inverse-placement.ts";
import type { LayerSide } from "../statistics/statistic.ts";

/** Distribution of second-order work over ranks. */
export interface KfacDistribution {
  /** Mesh axis that contains all ranks. */
  readonly axis: string;
  /** Assignment of work to ranks. Default: all ranks do all work. */
  readonly placement?: InversePlacement;
  /**
   * Mesh axes of the placement's grid. `workers`: axis along a column. `receivers`: axis along a row. Required if the
   * grid has several columns and several rows.
   */
  readonly grid?: { readonly workers: string; readonly receivers: string };
  /**
   * Content of a factor, and the ranks that have the factor. "mean": the mean over the samples of all ranks, on every
   * rank. "mean-at-owner": this mean, only on the ranks that invert the factor. "own": each rank that inverts the
   * factor uses only its own samples, so that factors are not sent. Default: "mean".
   */
  readonly factors?: "mean" | "mean-at-owner" | "own";
  /**
   * Whether the state of each rank is stored separately under every placement, so that its structure is the same for
   * all placements. Default: only if ranks differ.
   */
  readonly hasOwnState?: boolean;
}

/** Second-order work of one rank, the rank that is traced: the factors to invert, and the layers to precondition. */
export interface RankRole {
  readonly numRanks: number;
  /** Whether the rank preconditions a layer, and therefore stores the layer's inverses. */
  isWorker(path: string): boolean;
  /** Whether the rank inverts the layer's factor A (`input`) or G (`gradient`). */
  inverts(path: string, side: LayerSide): boolean;
  /**
   * Returns which share of a factor's blocks the rank inverts: share `part` of `parts` equal shares. Undefined: the
   * blocks are not shared among ranks.
   */
  shareOf(path: string, side: LayerSide): { readonly part: number; readonly parts: number } | undefined;
  /**
   * Returns the index along `axis` of the only rank that inverts a factor. Undefined: several ranks invert the factor.
   */
  ownerOf(path: string, side: LayerSide): number | undefined;
  /**
   * Returns the index along `workersAxis` of the rank that sends a factor's inverse. Undefined: the inverse is not
   * sent.
   */
  senderOf(path: string, side: LayerSide): number | undefined;
  readonly workersAxis: string;
  /** Returns the index along `receiversAxis` of the rank that sends a layer's preconditioned gradient. */
  columnOf(path: string): number;
  /** Mesh axis over which preconditioned gradients are sent. Undefined: every rank preconditions every layer. */
  readonly receiversAxis: string | undefined;
}

const singleRank: RankRole = {
  numRanks: 1,
  isWorker: () => true,
  inverts: () => true,
  shareOf: () => undefined,
  ownerOf: () => undefined,
  senderOf: () => undefined,
  workersAxis: "",
  columnOf: () => 0,
  receiversAxis: undefined,
};

/** Returns the second-order work of the traced rank. */
export const rankRole = (paths: readonly string[], distribution: KfacDistribution | undefined): RankRole => {
  if (distribution === undefined) return singleRank;
  const { axis, grid } = distribution;
  const numRanks = axisSize(axis);
  const placement = distribution.placement ?? placeEverywhere(paths, numRanks);
  checkPlacement(placement, paths, numRanks);
  if (numRanks === 1) return singleRank;
  const { workers, layers } = placement;
  // Called only if ranks differ. Otherwise, one graph may be used by all ranks.
  const own = (): GridCoordinates => gridCoordinates(meshCoordinate(axis), numRanks, workers);
  const isWorker = (path: string): boolean => workers === numRanks || layers[path]!.column === own().column;
  return {
    numRanks,
    isWorker,
    inverts: (path, side) => {
      const row = layers[path]![side];
      return isWorker(path) && (typeof row !== "number" || row === own().row);
    },
    shareOf: (path, side) =>
      layers[path]![side] === "shared-out" && workers > 1 ? { part: own().row, parts: workers } : undefined,
    ownerOf: (path, side) => inverterOf(placement, path, side, numRanks),
    senderOf: (path, side) => {
      const row = layers[path]![side];
      return typeof row !== "number" || workers === 1 ? undefined : row;
    },
    workersAxis: workers === numRanks ? axis : (grid?.workers ?? axis),
    columnOf: (path) => layers[path]!.column,
    receiversAxis: workers === numRanks ? undefined : workers === 1 ? axis : grid?.receivers,
  };
};
