// Shapes: B batch, T new positions, S capacity in positions, V vocabulary.
import { dynamicUpdateSlice, InvariantError, type Tensor } from "@skein/tensor-core";
import type { Model } from "./model.ts";
import type { KeyValues } from "./past.ts";

/** Model inputs other than the cache: parameters, state and tokens. */
interface Applied<Params, State> {
  readonly params: Params;
  readonly state: State;
  /** Tokens, i32 [B, T]. */
  readonly tokens: Tensor;
}

/**
 * Applies a causal model to the first positions of sequences and returns a key-value cache.
 *
 * @returns logits [B, T, V], and the cached keys and values of each layer, with capacity for T positions, as input for
 * `applyAfterPrefix`. A custom model is supported only if it passes the context to its submodels, and if positions of a
 * sequence interact only in its attention layers.
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
 * Cost: the cost of T positions without a cache, plus attention to all earlier positions.
 * @param layers Keys and values returned by `applyPrefix`, or by the previous call.
 * @param length Number of valid positions in `layers`, i32 []; at most S − T.
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
