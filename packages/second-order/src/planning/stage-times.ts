import { statisticElements } from "../statistics/collect.ts";
import { factorShape, isDiagonal } from "../statistics/covariances.ts";
import type { Layer } from "../statistics/layer.ts";
import type { LayerSide } from "../statistics/statistic.ts";

/** Properties of a layer that planners need. */
export type PlannedLayer = Pick<Layer, "path" | "numInputs" | "numOutputs" | "kind">;

/**
 * Time in seconds of each operation of second-order work, measured or fitted. Times of collectives include their
 * latency.
 */
export interface StageTimes {
  /**
   * Returns the time in seconds to compute one factor of a layer, A (`input`) or G (`gradient`), from the samples of
   * one rank.
   */
  readonly factorSeconds: (layer: PlannedLayer, side: LayerSide) => number;
  /**
   * Returns the time in seconds of a layer's pass that overlaps with the communication of factors: forward for A,
   * backward for G. Default: 0, so that communication overlaps only with the computation of other factors.
   */
  readonly passSeconds?: (layer: PlannedLayer, side: LayerSide) => number;
  /** Returns the time in seconds to invert a factor of n rows. */
  readonly inverseSeconds: (size: number) => number;
  /** Returns the time in seconds to multiply a layer's gradient by both inverses. */
  readonly preconditionSeconds: (layer: PlannedLayer) => number;
  /** Returns the time in seconds of an all-reduce over all ranks, by number of floats. */
  readonly allReduceSeconds: (elements: number) => number;
  /** Returns the time in seconds of a reduce from all ranks to one rank, by number of floats. */
  readonly reduceSeconds: (elements: number) => number;
  /** Returns the time in seconds of a broadcast in a group of `groupSize` ranks, 2 or more. */
  readonly broadcastSeconds: (elements: number, groupSize: number) => number;
}

export const sizeOf = ({ numInputs, numOutputs }: PlannedLayer, side: LayerSide): number =>
  side === "input" ? numInputs : numOutputs;

/**
 * Returns the number of floats to send for a factor, or for its inverse: triangles of its blocks, or a diagonal.
 * @example
 * ```ts
 * console.log(factorElements({ path: "a", numInputs: 4, numOutputs: 2, kind: "linear" }, "input")); // 10
 * ```
 */
export const factorElements = (layer: PlannedLayer, side: LayerSide, blockSize?: number): number =>
  statisticElements(factorShape(layer, side, blockSize));

/** Returns the time in seconds to invert a factor; 0 for a diagonal factor. */
export const inverseSecondsOf = (times: StageTimes, layer: PlannedLayer, side: LayerSide): number =>
  isDiagonal(layer, side) ? 0 : times.inverseSeconds(sizeOf(layer, side));
