import { statisticElements } from "../statistics/collect.ts";
import { factorShape, isDiagonal } from "../statistics/covariances.ts";
import type { Layer } from "../statistics/layer.ts";
import type { LayerSide } from "../statistics/statistic.ts";

/** Layer data that planners need. */
export type PlannedLayer = Pick<Layer, "path" | "numInputs" | "numOutputs" | "kind">;

/**
 * Times of each piece of second-order work, in seconds, measured or fitted. Times of collectives include their latency.
 */
export interface StageTimes {
  /** Time to compute one factor of a layer, A (`input`) or G (`gradient`), from the samples of one rank. */
  readonly factorSeconds: (layer: PlannedLayer, side: LayerSide) => number;
  /**
   * Time of the pass that overlaps with the communication of factors: forward of the layer for A, backward for G.
   * Default: 0, so that communication overlaps only with the computation of other factors.
   */
  readonly passSeconds?: (layer: PlannedLayer, side: LayerSide) => number;
  /** Time to invert a factor of n rows. */
  readonly inverseSeconds: (size: number) => number;
  /** Time to multiply the gradient of a layer by both inverses. */
  readonly preconditionSeconds: (layer: PlannedLayer) => number;
  /** Time of an all-reduce over all ranks, by number of floats. */
  readonly allReduceSeconds: (elements: number) => number;
  /** Time of a reduce over all ranks to one rank. */
  readonly reduceSeconds: (elements: number) => number;
  /** Time of a broadcast in a group of `groupSize` ranks, 2 or more. */
  readonly broadcastSeconds: (elements: number, groupSize: number) => number;
}

export const sizeOf = ({ numInputs, numOutputs }: PlannedLayer, side: LayerSide): number =>
  side === "input" ? numInputs : numOutputs;

/**
 * Number of floats sent for a factor, and for its inverse: triangles of its blocks, or a diagonal.
 *
 * @example
 * ```ts
 * console.log(factorElements({ path: "a", numInputs: 4, numOutputs: 2, kind: "linear" }, "input")); // 10
 * ```
 */
export const factorElements = (layer: PlannedLayer, side: LayerSide, blockSize?: number): number =>
  statisticElements(factorShape(layer, side, blockSize));

/** Time to invert a factor; 0 for a diagonal factor. */
export const inverseSecondsOf = (times: StageTimes, layer: PlannedLayer, side: LayerSide): number =>
  isDiagonal(layer, side) ? 0 : times.inverseSeconds(sizeOf(layer, side));
