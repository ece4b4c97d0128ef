// Shapes: B batch, T new positions, S positions that there is room for, V vocabulary.
import { dynamicUpdateSlice, InvariantError, type Tensor } from "@skein/tensor-core";
import type { Model } from "./model.ts";
import type { KeyValues } from "./past.ts";

/** Parts of a model that stay as they are. */
interface Applied<Params, State> {
  readonly params: Params;
  readonly state: State;
  /** i32 [B, T] */
  readonly tokens: Tensor;
}

/**
 * Apply a causal model to the beginning of sequences.
 *
 * @returns logits [B, T, V], and keys and values of each layer, with room for T positions: what `applyBehind` goes on
 * from. A model of yours goes on only where it gives the context to the models that it is made of, and looks at no
 * sequence as a whole.
 */
export const applyFirst = <Params, State>(
  model: Pick<Model<Params, State>, "apply">,
  { params, state, tokens }: Applied<Params, State>,
): readonly [logits: Tensor, layers: readonly KeyValues[]] => {
  const layers: KeyValues[] = [];
  const extend = (own: KeyValues): KeyValues => {
    layers.push(own);
    return own;
  };
  const [logits] = model.apply(params, state, tokens, { train: false, past: { extend } });
  return [logits, layers];
};

/**
 * Apply a causal model to what follows.
 *
 * Cost: that of T positions, and attention to all before them.
 * @param layers of `applyFirst`, or of the call before.
 * @param length i32 []: how many positions of them count; with the new ones at most S.
 * @returns logits [B, T, V] and the keys and values with those of the new positions.
 */
export const applyBehind = <Params, State>(
  model: Pick<Model<Params, State>, "apply">,
  { params, state, tokens }: Applied<Params, State>,
  layers: readonly KeyValues[],
  length: Tensor,
): readonly [logits: Tensor, layers: readonly KeyValues[]] => {
  const after: KeyValues[] = [];
  const extend = ({ keys, values }: KeyValues): KeyValues => {
    const before = layers[after.length];
    if (before === undefined) throw new InvariantError(`a model of ${layers.length} layers of attention has more now`);
    const put = (all: Tensor, own: Tensor): Tensor => dynamicUpdateSlice(all, own, [0, 0, length, 0]);
    const whole = { keys: put(before.keys, keys), values: put(before.values, values) };
    after.push(whole);
    return whole;
  };
  const [logits] = model.apply(params, state, tokens, { train: false, past: { length, extend } });
  return [logits, after];
};
