import { statisticElements } from "../statistics/collect.ts";
import { factorShape, isDiagonal } from "../statistics/covariances.ts";
import type { Layer } from "../statistics/layer.ts";
import type { LayerSide } from "../statistics/statistic.ts";

/** What plans know of a layer. */
export type PlannedLayer = Pick<Layer, "path" | "numInputs" | "numOutputs" | "kind">;

/** What each piece of second-order work takes, measured or fitted. Of collectives with their start-up. */
export interface StageTimes {
  /** To compute one factor of a layer, A (`input`) or G (`gradient`), of the samples of one rank. */
  readonly factorSeconds: (layer: PlannedLayer, side: LayerSide) => number;
  /**
   * Of the pass behind which factors travel: forward of the layer for A, backward for G. Default: 0, so that factors
   * hide behind the computing of other factors alone.
   */
  readonly passSeconds?: (layer: PlannedLayer, side: LayerSide) => number;
  /** To invert a factor of n rows. */
  readonly inverseSeconds: (size: number) => number;
  /** To multiply the gradient of a layer by both inverses. */
  readonly preconditionSeconds: (layer: PlannedLayer) => number;
  /** Over all ranks, by the number of floats. */
  readonly allReduceSeconds: (elements: number) => number;
  /** To one of all ranks. */
  readonly reduceSeconds: (elements: number) => number;
  /** Within a group of `groupSize` ranks, which is 2 or more. */
  readonly broadcastSeconds: (elements: number, groupSize: number) => number;
}

export const sizeOf = ({ numInputs, numOutputs }: PlannedLayer, side: LayerSide): number =>
  side === "input" ? numInputs : numOutputs;

/** Floats of a factor as it travels, and of its inverse: triangles of its blocks, or a diagonal. */
export const factorElements = (layer: PlannedLayer, side: LayerSide, blockSize?: number): number =>
  statisticElements(factorShape(layer, side, blockSize));

/** A diagonal is inverted in no time. */
export const inverseSecondsOf = (times: StageTimes, layer: PlannedLayer, side: LayerSide): number =>
  isDiagonal(layer, side) ? 0 : times.inverseSeconds(sizeOf(layer, side));
