import type { GradientTransformation } from "@skein/tensor-core";
import type { Layer } from "./statistics/layer.ts";
import type { LayerSide, Statistic } from "./statistics/statistic.ts";

/**
 * A gradient transformation that uses layer statistics. A step that observes statistics calls `observe` before
 * `update`.
 */
export interface Preconditioner<State> extends GradientTransformation<State> {
  readonly layers: readonly Layer[];
  readonly statistic: Statistic;
  /**
   * Whether the traced rank needs the statistic of a layer's inputs (`input`) or output gradients (`gradient`).
   * Default: all statistics of all layers.
   */
  readonly wants?: (layer: Layer, side: LayerSide) => boolean;
  /**
   * Returns the index, along the axis of all ranks, of the only rank that needs the mean of a statistic of a layer's
   * inputs or output gradients. Undefined: several ranks need the mean. Default: all ranks need all means.
   */
  readonly ownerOf?: (layer: Layer, side: LayerSide) => number | undefined;
  observe: NonNullable<GradientTransformation<State>["observe"]>;
}
