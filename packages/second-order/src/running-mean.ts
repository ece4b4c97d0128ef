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
 * The share of the past in a running mean after `count` values: `min(decay, 1 − 1/(count + 1))`. So the first values
 * are averaged plainly, and nothing of what the mean was initialised with is ever in it.
 */
export const shareOfPast = (decay: number, count: Tensor): Tensor =>
  minimum(subtract(1, divide(1, add(cast(count, "f32"), 1))), decay);

/** `past · old + (1 − past) · new`; `old` where a value of the new one is not finite. */
const mixed = (past: Tensor, old: Tensor, now: Tensor): Tensor =>
  where(all(isFinite(now)), add(multiply(old, past), multiply(now, subtract(1, past))), old);

/** Mix new statistics into running means of the same layers and sides. A statistic that is not finite is left out. */
export const mixStatistics = (past: Tensor, old: Statistics, now: Statistics): Statistics =>
  Object.fromEntries(
    Object.entries(old).map(([path, means]) => [
      path,
      Object.fromEntries(
        layerSides.flatMap((side) => {
          const [before, after] = [means[side], now[path]?.[side]];
          return before === undefined ? [] : [[side, after === undefined ? before : mixed(past, before, after)]];
        }),
      ),
    ]),
  );

/** Zeros, before the first mean. */
export const initStatistics = (
  layers: readonly Layer[],
  statistic: Statistic,
  wants: (layer: Layer, side: LayerSide) => boolean = () => true,
): Statistics =>
  Object.fromEntries(
    layers.map((layer) => [
      layer.path,
      Object.fromEntries(
        layerSides
          .filter((side) => statistic[side] !== undefined && wants(layer, side))
          .map((side) => [side, full([...statistic.shapeOf(layer, side)], 0)]),
      ),
    ]),
  );
