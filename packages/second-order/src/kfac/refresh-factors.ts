import {
  all,
  allGather,
  cast,
  concat,
  full,
  greater,
  inPhase,
  logicalNot,
  pad,
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
import { type DerivedFactor, type FactorInverse, hasFiniteValues, type Sides } from "./factor-inverse.ts";
import type { RankRole } from "./rank-role.ts";
import { type RootTensor, broadcastTogether } from "../broadcast-together.ts";

/** Derived tensors of both factors, by the path of the layer's weight. */
type DerivedFactors = Readonly<Record<string, Sides<DerivedFactor>>>;

export interface Refreshing {
  readonly layers: readonly Layer[];
  readonly statistic: Statistic;
  readonly inverse: FactorInverse;
  /** Damping γ, f32 scalar. */
  readonly damping: Tensor;
  readonly role: RankRole;
}

/** Returns `now` if `isValid` is true, otherwise `before`. */
const selectValid = (isValid: Tensor, now: DerivedFactor, before: DerivedFactor): DerivedFactor =>
  Object.fromEntries(Object.entries(now).map(([key, value]) => [key, where(isValid, value, before[key]!)]));

interface SharedFactor {
  readonly factor: Tensor;
  readonly derive: (blocks?: Tensor) => DerivedFactor;
  readonly inverse: FactorInverse;
  readonly path: string;
}

/**
 * Derives the tensors of this rank's share of a factor's blocks, and all-gathers the tensors of all shares within the
 * rank's column of the grid.
 */
const deriveShared = (
  { factor, derive, inverse, path }: SharedFactor,
  { workersAxis }: RankRole,
  { part, parts }: { readonly part: number; readonly parts: number },
): { readonly derived: DerivedFactor; readonly isValid: Tensor } => {
  const [count, size] = factor.rank === 2 ? [1, factor.shape[0]!] : (factor.shape.slice(0, 2) as [number, number]);
  const each = Math.ceil(count / parts);
  const blocks = pad(reshape(factor, [count, size, size]), [
    [0, each * parts - count],
    [0, 0],
    [0, 0],
  ]);
  const mine = scope(`inverse/${path}`, () =>
    derive(slice(blocks, [part * each, 0, 0], [(part + 1) * each, size, size])),
  );
  const packed = inverse.pack(mine);
  const message = concat([packed, reshape(cast(hasFiniteValues(mine), "f32"), [1])]);
  const gathered = inPhase("communication", () =>
    scope("inverses-shared-out", () => reshape(allGather(message, workersAxis), [parts, -1])),
  );
  const ofPart = Array.from({ length: parts }, (_, i) => {
    const row = slice(gathered, [i, 0], [i + 1, packed.shape[0]!]);
    return inverse.unpack(reshape(row, [-1]), [each, size, size]);
  });
  const flags = slice(gathered, [0, packed.shape[0]!]);
  const derived = Object.fromEntries(
    Object.entries(mine).map(([key, value]): [string, Tensor] => {
      const blocksOfAll = concat(ofPart.map((one) => one[key]!));
      const rows = (value.shape[0]! / each) * count;
      const kept = slice(blocksOfAll, [0], [rows]);
      return [key, factor.rank === 2 && kept.rank === 3 ? reshape(kept, [size, size]) : kept];
    }),
  );
  return { derived, isValid: all(greater(flags, 0.5)) };
};

/** Recomputes all inverses on the ranks of the placement, and sends the inverses to the ranks that use them. */
export const refreshFactors = (
  { layers, statistic, inverse, damping, role }: Refreshing,
  { factors, derived }: { readonly factors: Statistics; readonly derived: DerivedFactors },
): { readonly derived: DerivedFactors; readonly stale: Tensor } => {
  const sides = layers.flatMap((layer) => layerSides.map((side) => ({ layer, side })));
  const own = new Map<string, DerivedFactor>();
  const flags = new Map<string, Tensor>();
  const messages: (RootTensor & { readonly path: string; readonly side: LayerSide; readonly sizes: Shape })[] = [];
  for (const { layer, side } of sides) {
    const { path } = layer;
    if (!role.isWorker(path)) continue;
    const name = sideName(path, side);
    let mine: Tensor | undefined;
    if (role.inverts(path, side)) {
      const before = derived[path]![side];
      const { [side]: derive } = inverse.derive(
        factors[path] as Sides<Tensor>,
        { input: layer.numInputs, gradient: layer.numOutputs },
        damping,
      );
      const share = role.shareOf(path, side);
      if (share !== undefined && factors[path]![side]!.rank > 1) {
        const shared = deriveShared({ factor: factors[path]![side]!, derive, inverse, path }, role, share);
        own.set(name, selectValid(shared.isValid, shared.derived, before));
        flags.set(name, shared.isValid);
        continue;
      }
      const after = scope(`inverse/${path}`, () => derive());
      const isValid = hasFiniteValues(after);
      own.set(name, selectValid(isValid, after, before));
      flags.set(name, isValid);
      mine = concat([inverse.pack(own.get(name)!), reshape(cast(isValid, "f32"), [1])]);
    }
    const root = role.senderOf(path, side);
    if (root === undefined) continue;
    const shape = statistic.shapeOf(layer, side);
    messages.push({
      root,
      path,
      side,
      sizes: shape,
      shape: [inverse.packedElements(shape) + 1],
      ...(mine !== undefined && { value: mine }),
    });
  }
  broadcastTogether("inverses", role.workersAxis, messages).forEach((message, i) => {
    const { path, side, sizes } = messages[i]!;
    const count = message.shape[0]! - 1;
    own.set(sideName(path, side), inverse.unpack(slice(message, [0], [count]), sizes));
    flags.set(sideName(path, side), greater(reshape(slice(message, [count]), []), 0.5));
  });
  return {
    derived: Object.fromEntries(
      layers
        .filter(({ path }) => role.isWorker(path))
        .map(({ path }) => [
          path,
          { input: own.get(sideName(path, "input"))!, gradient: own.get(sideName(path, "gradient"))! },
        ]),
    ),
    stale: stack(
      sides.map(({ layer, side }) => {
        const isValid = flags.get(sideName(layer.path, side));
        return isValid === undefined ? full([], 0, "i32") : cast(logicalNot(isValid), "i32");
      }),
    ),
  };
};
