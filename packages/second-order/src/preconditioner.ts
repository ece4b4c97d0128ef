import type { GradientTransformation } from "@skein/tensor-core";
import type { Layer } from "./statistics/layer.ts";
import type { LayerSide, Statistic } from "./statistics/statistic.ts";

/**
 * A transformation that takes statistics of layers: what it asks for, and how it takes them in. A step that observes
 * calls `observe` before `update`.
 */
export interface Preconditioner<State> extends GradientTransformation<State> {
  readonly layers: readonly Layer[];
  readonly statistic: Statistic;
  /** Which sides of which layers the rank that is traced for asks for. Default: all. */
  readonly wants?: (layer: Layer, side: LayerSide) => boolean;
  /**
   * Position along the axis of all ranks of the one that needs the mean of a side; undefined where several do. Default:
   * all need all.
   */
  readonly ownerOf?: (layer: Layer, side: LayerSide) => number | undefined;
  observe: NonNullable<GradientTransformation<State>["observe"]>;
}
