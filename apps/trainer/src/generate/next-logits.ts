import type { Model } from "@skein/models";
import {
  type Backend,
  type DeviceArray,
  gather,
  jit,
  mapTree,
  NdArray,
  reshape,
  type Tensor,
} from "@skein/tensor-core";

/** Gives the scores of what follows a sequence of tokens. */
export interface NextLogits {
  /** @param tokens one at least; of more than the window's the last ones are looked at. */
  of(tokens: readonly number[]): Promise<Float32Array>;
  release(): void;
}

/** The same of weights that lie on the device already, given with each call. */
export interface NextLogitsOf {
  of(params: unknown, state: unknown, tokens: readonly number[]): Promise<Float32Array>;
  release(): void;
}

/**
 * Compile a causal model for sequences of up to `window` tokens. Shorter ones are filled up behind, where a causal
 * model does not look, so one program serves all.
 *
 * Cost: a forward pass over the window for each token.
 */
export const compileNextLogits = (model: Model, window: number, backend: Backend): NextLogitsOf => {
  const compiled = jit(
    (weights: unknown, own: unknown, tokens: Tensor, last: Tensor) => {
      const [logits] = model.apply(weights, own, tokens, { train: false });
      return reshape(gather(reshape(logits, [window, -1]), last), [-1]);
    },
    backend,
    { name: "next token" },
  ) as unknown as ((...args: unknown[]) => Promise<DeviceArray>) & { release(): void };
  return {
    of: async (weights, own, tokens) => {
      const seen = tokens.slice(-window);
      const filled = Int32Array.from({ length: window }, (_, i) => seen[i] ?? 0);
      const logits = await compiled(
        weights,
        own,
        new NdArray("i32", [1, window], filled),
        NdArray.from([seen.length - 1], [1], "i32"),
      );
      const scores = (await backend.download(logits)).data as Float32Array;
      backend.free(logits);
      return scores;
    },
    release: () => compiled.release(),
  };
};

/** `compileNextLogits` with weights that it brings to the device. */
export const nextLogits = (
  { model, params, state }: { readonly model: Model; readonly params: unknown; readonly state: unknown },
  window: number,
  backend: Backend,
): NextLogits => {
  const compiled = compileNextLogits(model, window, backend);
  const [weights, own] = [params, state].map((tree) => mapTree(tree, (array: NdArray) => backend.upload(array)));
  return { of: (tokens) => compiled.of(weights, own, tokens), release: () => compiled.release() };
};
