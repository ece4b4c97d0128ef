import { applyBehind, applyFirst, type KeyValues } from "@skein/models";
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

/** Gives the scores of what follows a sequence of tokens. */
export interface NextLogits {
  /** @param tokens one at least; of more than the window's the last ones are looked at. */
  of(tokens: readonly number[]): Promise<Float32Array>;
  release(): void;
}

/** Keys and values on the device. */
type Layers = readonly Readonly<Record<keyof KeyValues, DeviceArray>>[];

/** What a pass gives. */
interface Passed {
  readonly logits: DeviceArray;
  readonly layers: Layers;
}

type Compiled = ((...args: unknown[]) => Promise<Passed>) & { release(): void };

/** The sequence whose keys and values are there. */
interface Held {
  readonly tokens: readonly number[];
  readonly layers: Layers;
}

const commonLength = (one: readonly number[], other: readonly number[]): number => {
  const end = Math.min(one.length, other.length);
  for (let i = 0; i < end; i++) if (one[i] !== other[i]) return i;
  return end;
};

/** A causal model that is compiled, whatever its weights. */
export interface CompiledNextLogits {
  /** With weights that lie on the device, as they are now; to be released when they change. */
  on(params: unknown, state: unknown): NextLogits;
  release(): void;
}

/**
 * Compile a causal model for sequences of up to `window` tokens. Shorter ones are filled up behind, where a causal
 * model does not look, so one program serves all.
 *
 * A sequence that is the one before, or a part of it, and a token more goes on from its keys and values.
 *
 * Cost: a forward pass over the window for a new sequence, and for one longer than the window; over one position for
 * each further token, where the model goes on. Memory: keys and values of the window in each layer.
 *
 * @param goesOn see `TextModel`.
 */
export const compileNextLogits = (
  { model, goesOn }: Pick<TextModel, "model" | "goesOn">,
  window: number,
  backend: Backend,
): CompiledNextLogits => {
  const whole = jit(
    (weights: unknown, own: unknown, tokens: Tensor, last: Tensor) => {
      const [logits, layers] = applyFirst(model, { params: weights, state: own, tokens });
      return { logits: reshape(gather(reshape(logits, [window, -1]), last), [-1]), layers: goesOn ? layers : [] };
    },
    backend,
    { name: "next token of a new text" },
  ) as unknown as Compiled;
  const further = jit(
    (weights: unknown, own: unknown, tokens: Tensor, length: Tensor, before: readonly KeyValues[]) => {
      const [logits, layers] = applyBehind(model, { params: weights, state: own, tokens }, before, length);
      return { logits: reshape(logits, [-1]), layers };
    },
    backend,
    { name: "next token", donate: [4] },
  ) as unknown as Compiled;

  const on = (weights: unknown, own: unknown): NextLogits => {
    let held: Held | undefined;
    const forget = (): void => {
      for (const array of flattenTree<DeviceArray>(held?.layers ?? []).leaves) backend.free(array);
      held = undefined;
    };
    const passOver = (tokens: readonly number[]): Promise<Passed> => {
      forget();
      const filled = Int32Array.from({ length: window }, (_, i) => tokens[i] ?? 0);
      const last = NdArray.from([tokens.length - 1], [1], "i32");
      return whole(weights, own, new NdArray("i32", [1, window], filled), last);
    };
    const goOn = ({ layers }: Held, token: number, length: number): Promise<Passed> => {
      held = undefined; // given away
      return further(weights, own, NdArray.from([token], [1, 1], "i32"), NdArray.from([length], [], "i32"), layers);
    };
    return {
      of: async (tokens) => {
        const seen = tokens.slice(-window);
        const place = seen.length - 1;
        // All keys and values are there but that of the last token, which another one may have had the place of.
        const { logits, layers } =
          held !== undefined && commonLength(held.tokens, seen) >= place
            ? await goOn(held, seen[place]!, place)
            : await passOver(seen);
        if (layers.length > 0) held = { tokens: seen, layers };
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

/** `compileNextLogits` with weights that it brings to the device. */
export const nextLogits = (
  text: Pick<TextModel, "model" | "params" | "state" | "goesOn">,
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
