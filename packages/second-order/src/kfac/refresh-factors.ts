import {
  cast,
  concat,
  full,
  greater,
  logicalNot,
  reshape,
  scope,
  type Shape,
  slice,
  stack,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { sideName, type Statistics } from "../statistics/collect.ts";
import type { Layer } from "../statistics/layer.ts";
import { type LayerSide, layerSides, type Statistic } from "../statistics/statistic.ts";
import { type DerivedFactor, type FactorInverse, isSound, type Sides } from "./factor-inverse.ts";
import type { RankPlacement } from "./rank-placement.ts";
import { type Parcel, sendTogether } from "../send-together.ts";

/** What was derived of both factors, by the path of the layer's weight. */
type DerivedFactors = Readonly<Record<string, Sides<DerivedFactor>>>;

export interface Refreshing {
  readonly layers: readonly Layer[];
  readonly statistic: Statistic;
  readonly inverse: FactorInverse;
  /** γ, f32 scalar. */
  readonly damping: Tensor;
  readonly place: RankPlacement;
}

/** Derive all inverses anew, each where it is placed, and hand them on to those that use them. */
export const refreshFactors = (
  { layers, statistic, inverse, damping, place }: Refreshing,
  { factors, derived }: { readonly factors: Statistics; readonly derived: DerivedFactors },
): { readonly derived: DerivedFactors; readonly stale: Tensor } => {
  const sides = layers.flatMap((layer) => layerSides.map((side) => ({ layer, side })));
  const own = new Map<string, DerivedFactor>();
  const flags = new Map<string, Tensor>();
  const parcels: (Parcel & { readonly path: string; readonly side: LayerSide; readonly sizes: Shape })[] = [];
  for (const { layer, side } of sides) {
    const { path } = layer;
    if (!place.isWorker(path)) continue;
    const name = sideName(path, side);
    let mine: Tensor | undefined;
    if (place.inverts(path, side)) {
      const before = derived[path]![side];
      const { [side]: derive } = inverse.derive(
        factors[path] as Sides<Tensor>,
        { input: layer.numInputs, gradient: layer.numOutputs },
        damping,
      );
      const after = scope(`inverse/${path}`, derive);
      const sound = isSound(after);
      own.set(
        name,
        Object.fromEntries(Object.entries(after).map(([key, now]) => [key, where(sound, now, before[key]!)])),
      );
      flags.set(name, sound);
      mine = concat([inverse.pack(own.get(name)!), reshape(cast(sound, "f32"), [1])]);
    }
    const root = place.senderOf(path, side);
    if (root === undefined) continue;
    const shape = statistic.shapeOf(layer, side);
    parcels.push({
      root,
      path,
      side,
      sizes: shape,
      shape: [inverse.packedElements(shape) + 1],
      ...(mine !== undefined && { value: mine }),
    });
  }
  sendTogether("inverses", place.workersAxis, parcels).forEach((message, i) => {
    const { path, side, sizes } = parcels[i]!;
    const count = message.shape[0]! - 1;
    own.set(sideName(path, side), inverse.unpack(slice(message, [0], [count]), sizes));
    flags.set(sideName(path, side), greater(reshape(slice(message, [count]), []), 0.5));
  });
  return {
    derived: Object.fromEntries(
      layers
        .filter(({ path }) => place.isWorker(path))
        .map(({ path }) => [
          path,
          { input: own.get(sideName(path, "input"))!, gradient: own.get(sideName(path, "gradient"))! },
        ]),
    ),
    stale: stack(
      sides.map(({ layer, side }) => {
        const sound = flags.get(sideName(layer.path, side));
        return sound === undefined ? full([], 0, "i32") : cast(logicalNot(sound), "i32");
      }),
    ),
  };
};
