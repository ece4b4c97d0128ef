import {
  add,
  all,
  full,
  cast,
  divide,
  isFinite,
  minimum,
  multiply,
  subtract,
  type Tensor,
  where,
} from "@skein/tensor-core";
import type { Statistics } from "./statistics/collect.ts";
import type { Layer } from "./statistics/layer.ts";
import { type LayerSide, layerSides, type Statistic } from "./statistics/statistic.ts";

/**
 * Returns the weight of the previous value in a running mean after `count` values: `min(decay, 1 − 1/(count + 1))`.
 * Therefore the first values are averaged with equal weights, and the initial value has weight 0.
 */
export const pastWeight = (decay: number, count: Tensor): Tensor =>
  minimum(subtract(1, divide(1, add(cast(count, "f32"), 1))), decay);

/** Returns `past · old + (1 − past) · new`, or `old` if a value of the new tensor is not finite. */
const mix = (past: Tensor, old: Tensor, now: Tensor): Tensor =>
  where(all(isFinite(now)), add(multiply(old, past), multiply(now, subtract(1, past))), old);

/**
 * Returns running means updated with new statistics of the same layer sides. Statistics that are not finite are
 * skipped.
 */
export const mixStatistics = (past: Tensor, old: Statistics, now: Statistics): Statistics =>
  Object.fromEntries(
    Object.entries(old).map(([path, means]) => [
      path,
      Object.fromEntries(
        layerSides.flatMap((side) => {
          const [before, after] = [means[side], now[path]?.[side]];
          return before === undefined ? [] : [[side, after === undefined ? before : mix(past, before, after)]];
        }),
      ),
    ]),
  );

/** Returns zeros as initial running means. */
export const initStatistics = (
  layers: readonly Layer[],
  statistic: Statistic,
  isIncluded: (layer: Layer, side: LayerSide) => boolean = () => true,
): Statistics =>
  Object.fromEntries(
    layers.map((layer) => [
      layer.path,
      Object.fromEntries(
        layerSides
          .filter((side) => statistic[side] !== undefined && isIncluded(layer, side))
          .map((side) => [side, full([...statistic.shapeOf(layer, side)], 0)]),
      ),
    ]),
  );
