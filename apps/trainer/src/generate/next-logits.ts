import { applyAfterPrefix, applyPrefix, type KeyValues } from "@skein/models";
import {
  type Backend,
  type DeviceArray,
  flattenTree,
  gather,
  jit,
  mapTree,
  NdArray,
  reshape,
  type Tensor,
} from "@skein/tensor-core";
import type { TextModel } from "./text-model.ts";

/** A compiled causal model with weights, which computes the logits of the next token. */
export interface NextLogits {
  /**
   * Returns the logits of the token that follows `tokens`.
   * @param tokens at least one token; if there are more tokens than the window, only the last ones are used.
   */
  of(tokens: readonly number[]): Promise<Float32Array>;
  release(): void;
}

/** Cached keys and values per layer, on the device. */
type Layers = readonly Readonly<Record<keyof KeyValues, DeviceArray>>[];

/** Result of a forward pass: logits of the next token, and keys and values of all layers. */
interface PassResult {
  readonly logits: DeviceArray;
  readonly layers: Layers;
}

type Compiled = ((...args: unknown[]) => Promise<PassResult>) & { release(): void };

/** Tokens whose keys and values are cached. */
interface CachedSequence {
  readonly tokens: readonly number[];
  readonly layers: Layers;
}

const commonLength = (one: readonly number[], other: readonly number[]): number => {
  const end = Math.min(one.length, other.length);
  for (let i = 0; i < end; i++) if (one[i] !== other[i]) return i;
  return end;
};

/** A compiled causal model without weights. */
export interface CompiledNextLogits {
  /** Binds the model to weights on the device. Release the result when the weights change. */
  on(params: unknown, state: unknown): NextLogits;
  release(): void;
}

/**
 * Compiles a causal model for sequences of up to `window` tokens. Shorter sequences are padded at the end. A causal
 * model ignores this padding, so that a single program is enough for all lengths.
 *
 * If a sequence extends the previous sequence, or a prefix of it, by one token, the computation continues from the
 * cached keys and values.
 *
 * Cost: a forward pass over the window for a new sequence, or for a sequence longer than the window; a forward pass
 * over one position for each further token, if the model supports caching. Memory: keys and values of the window in
 * each layer.
 *
 * @param usesKeyValueCache see `TextModel`.
 */
export const compileNextLogits = (
  { model, usesKeyValueCache }: Pick<TextModel, "model" | "usesKeyValueCache">,
  window: number,
  backend: Backend,
): CompiledNextLogits => {
  const whole = jit(
    (weights: unknown, own: unknown, tokens: Tensor, last: Tensor) => {
      const [logits, layers] = applyPrefix(model, { params: weights, state: own, tokens });
      return {
        logits: reshape(gather(reshape(logits, [window, -1]), last), [-1]),
        layers: usesKeyValueCache ? layers : [],
      };
    },
    backend,
    { name: "next token of a new text" },
  ) as unknown as Compiled;
  const further = jit(
    (weights: unknown, own: unknown, tokens: Tensor, length: Tensor, before: readonly KeyValues[]) => {
      const [logits, layers] = applyAfterPrefix(model, { params: weights, state: own, tokens }, before, length);
      return { logits: reshape(logits, [-1]), layers };
    },
    backend,
    { name: "next token", donate: [4] },
  ) as unknown as Compiled;

  const on = (weights: unknown, own: unknown): NextLogits => {
    let cached: CachedSequence | undefined;
    const forget = (): void => {
      for (const array of flattenTree<DeviceArray>(cached?.layers ?? []).leaves) backend.free(array);
      cached = undefined;
    };
    const runWhole = (tokens: readonly number[]): Promise<PassResult> => {
      forget();
      const filled = Int32Array.from({ length: window }, (_, i) => tokens[i] ?? 0);
      const last = NdArray.from([tokens.length - 1], [1], "i32");
      return whole(weights, own, new NdArray("i32", [1, window], filled), last);
    };
    const runNext = ({ layers }: CachedSequence, token: number, length: number): Promise<PassResult> => {
      cached = undefined; // the arrays of the cache are donated to the call
      return further(weights, own, NdArray.from([token], [1, 1], "i32"), NdArray.from([length], [], "i32"), layers);
    };
    return {
      of: async (tokens) => {
        const recent = tokens.slice(-window);
        const last = recent.length - 1;
        // The cache has the keys and values of all tokens except the last. The last token is computed, because the
        // cache may have another token at its position.
        const { logits, layers } =
          cached !== undefined && commonLength(cached.tokens, recent) >= last
            ? await runNext(cached, recent[last]!, last)
            : await runWhole(recent);
        if (layers.length > 0) cached = { tokens: recent, layers };
        const scores = (await backend.download(logits)).data as Float32Array;
        backend.free(logits);
        return scores;
      },
      release: forget,
    };
  };
  return {
    on,
    release: () => {
      whole.release();
      further.release();
    },
  };
};

/** Compiles a model like `compileNextLogits`, and uploads its weights to the device. */
export const nextLogits = (
  text: Pick<TextModel, "model" | "params" | "state" | "usesKeyValueCache">,
  window: number,
  backend: Backend,
): NextLogits => {
  const compiled = compileNextLogits(text, window, backend);
  const [weights, own] = [text.params, text.state].map((tree) =>
    mapTree(tree, (array: NdArray) => backend.upload(array)),
  );
  const next = compiled.on(weights, own);
  return {
    of: next.of,
    release: () => {
      next.release();
      compiled.release();
    },
  };
};
