import { meshPlace } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import {
  checkPlacement,
  type GridPlace,
  gridPlace,
  inverterOf,
  type InversePlacement,
  placeEverywhere,
} from "../placement/inverse-placement.ts";
import type { LayerSide } from "../statistics/statistic.ts";

/** How the ranks share second-order work. */
export interface KfacDistribution {
  /** Mesh axis of all ranks. */
  readonly axis: string;
  /** Which rank does what. Default: all ranks do all of it. */
  readonly placement?: InversePlacement;
  /**
   * Mesh axes of the grid's columns and rows, where it has several of both: along `workers` lie the ranks of a column,
   * along `receivers` those of a row.
   */
  readonly grid?: { readonly workers: string; readonly receivers: string };
  /**
   * Of which samples a factor is, and who keeps it: the mean over all ranks, kept by every rank; that mean, kept by the
   * ranks that invert it; or the samples of a rank that inverts it alone, which sends nothing of it. Default: mean.
   */
  readonly factors?: "mean" | "mean-at-owner" | "own";
  /**
   * Whether the state of a rank is its own whatever is placed where, so that all placements have states alike in shape.
   * Default: where ranks differ.
   */
  readonly hasOwnState?: boolean;
}

/** What the rank that is traced for does. */
export interface RankPlacement {
  readonly numRanks: number;
  /** Whether it preconditions a layer, and so keeps the inverses. */
  isWorker(path: string): boolean;
  /** Whether it inverts a factor. */
  inverts(path: string, side: LayerSide): boolean;
  /** The share of a factor's blocks that the rank inverts; undefined where it is not shared out. */
  shareOf(path: string, side: LayerSide): { readonly part: number; readonly parts: number } | undefined;
  /** Position along `axis` of the one rank that inverts a factor; undefined where several do. */
  ownerOf(path: string, side: LayerSide): number | undefined;
  /** Position along `workersAxis` of the rank that sends the inverse of a factor; undefined where nobody does. */
  senderOf(path: string, side: LayerSide): number | undefined;
  readonly workersAxis: string;
  /** Position along `receiversAxis` of the rank that sends a layer's preconditioned gradient. */
  columnOf(path: string): number;
  /** Undefined where every rank preconditions every layer. */
  readonly receiversAxis: string | undefined;
}

const alone: RankPlacement = {
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

/** The part of the rank that the running trace is for. */
export const rankPlacement = (paths: readonly string[], distribution: KfacDistribution | undefined): RankPlacement => {
  if (distribution === undefined) return alone;
  const { axis, grid } = distribution;
  const numRanks = axisSize(axis);
  const placement = distribution.placement ?? placeEverywhere(paths, numRanks);
  checkPlacement(placement, paths, numRanks);
  if (numRanks === 1) return alone;
  const { workers, layers } = placement;
  // Asked for only where ranks differ: one graph may be that of all.
  const own = (): GridPlace => gridPlace(meshPlace(axis), numRanks, workers);
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
