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
  /** Mesh axis of all ranks. */
  readonly axis: string;
  /** Assignment of work to ranks. Default: all ranks do all work. */
  readonly placement?: InversePlacement;
  /**
   * Mesh axes of the grid, if it has several columns and several rows: `workers` is the axis of the ranks of a column,
   * `receivers` that of the ranks of a row.
   */
  readonly grid?: { readonly workers: string; readonly receivers: string };
  /**
   * Samples and owner of a factor. "mean": the mean over all ranks, kept by every rank. "mean-at-owner": that mean,
   * kept only by the ranks that invert it. "own": the samples of the single rank that inverts it, so that nothing is
   * sent. Default: "mean".
   */
  readonly factors?: "mean" | "mean-at-owner" | "own";
  /**
   * Whether each rank has its own state under every placement, so that the state has the same structure for all
   * placements. Default: only if ranks differ.
   */
  readonly hasOwnState?: boolean;
}

/** Work of the rank that is being traced. */
export interface RankRole {
  readonly numRanks: number;
  /** Whether the rank preconditions a layer, and therefore keeps its inverses. */
  isWorker(path: string): boolean;
  /** Whether the rank inverts a factor. */
  inverts(path: string, side: LayerSide): boolean;
  /** Share of a factor's blocks that the rank inverts. Undefined: the blocks are not shared. */
  shareOf(path: string, side: LayerSide): { readonly part: number; readonly parts: number } | undefined;
  /** Index along `axis` of the only rank that inverts a factor. Undefined: several ranks invert it. */
  ownerOf(path: string, side: LayerSide): number | undefined;
  /** Index along `workersAxis` of the rank that sends the inverse of a factor. Undefined: the inverse is not sent. */
  senderOf(path: string, side: LayerSide): number | undefined;
  readonly workersAxis: string;
  /** Index along `receiversAxis` of the rank that sends a layer's preconditioned gradient. */
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

/** Returns the work of the rank that is being traced. */
export const rankRole = (paths: readonly string[], distribution: KfacDistribution | undefined): RankRole => {
  if (distribution === undefined) return singleRank;
  const { axis, grid } = distribution;
  const numRanks = axisSize(axis);
  const placement = distribution.placement ?? placeEverywhere(paths, numRanks);
  checkPlacement(placement, paths, numRanks);
  if (numRanks === 1) return singleRank;
  const { workers, layers } = placement;
  // Called only if ranks differ, because otherwise one graph may serve all ranks.
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
