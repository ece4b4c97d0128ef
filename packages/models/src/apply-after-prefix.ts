// Shapes: B batch, T new positions, S capacity in positions, V vocabulary.
import { dynamicUpdateSlice, InvariantError, type Tensor } from "@skein/tensor-core";
import type { Model } from "./model.ts";
import type { KeyValues } from "./past.ts";

/** Constant arguments of a model. */
interface Applied<Params, State> {
  readonly params: Params;
  readonly state: State;
  /** i32 [B, T] */
  readonly tokens: Tensor;
}

/**
 * Applies a causal model to the beginning of sequences and returns a key-value cache.
 *
 * @returns logits [B, T, V], and keys and values of each layer, with capacity for T positions, which `applyAfterPrefix`
 * continues from. Your own model supports this only if it passes the context to the models that it consists of, and
 * does not depend on a sequence as a whole.
 */
export const applyPrefix = <Params, State>(
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
 * Applies a causal model to the tokens after a cached prefix.
 *
 * Cost: that of T positions, and attention to all earlier positions.
 * @param layers keys and values of `applyPrefix`, or of the previous call.
 * @param length number of valid positions in `layers`, i32 []; with the new ones at most S.
 * @returns logits [B, T, V], and the keys and values including the new positions.
 */
export const applyAfterPrefix = <Params, State>(
  model: Pick<Model<Params, State>, "apply">,
  { params, state, tokens }: Applied<Params, State>,
  layers: readonly KeyValues[],
  length: Tensor,
): readonly [logits: Tensor, layers: readonly KeyValues[]] => {
  const after: KeyValues[] = [];
  const extend = ({ keys, values }: KeyValues): KeyValues => {
    const before = layers[after.length];
    if (before === undefined)
      throw new InvariantError(`a model with ${layers.length} attention layers has more layers in this call`);
    const put = (all: Tensor, own: Tensor): Tensor => dynamicUpdateSlice(all, own, [0, 0, length, 0]);
    const whole = { keys: put(before.keys, keys), values: put(before.values, values) };
    after.push(whole);
    return whole;
  };
  const [logits] = model.apply(params, state, tokens, { train: false, past: { length, extend } });
  return [logits, after];
};
