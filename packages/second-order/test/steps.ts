import type { NdArray } from "@skein/tensor-core";
import type { GradientTransformation, Tensor } from "@skein/tensor-core";
import type { Layer } from "../src/index.ts";
import { runRanks } from "./world.ts";

/** Returns a layer with weight `w`, [inputs, outputs]. With `hasBias`, the bias `b` counts as one of the inputs. */
export const denseLayer = (numInputs: number, numOutputs: number, hasBias = false): Layer => ({
  path: "w",
  ...(hasBias && { bias: "b" }),
  kind: "linear",
  numInputs,
  numOutputs,
  rearrangements: [],
  isTransposed: false,
});

type Arrays = Readonly<Record<string, NdArray>>;

export interface Applied {
  readonly updates: Readonly<Record<string, number[]>>;
  /** Tree of the optimizer state. */
  readonly state: unknown;
}

/**
 * Observes statistics one time and preconditions a gradient, on one rank of the reference backend.
 *
 * @param statistics statistics of the layer `w`. Absent: the transformation needs none.
 */
export const applyOnce = <State>(
  transformation: GradientTransformation<State>,
  gradients: Arrays,
  statistics?: { readonly input?: NdArray; readonly gradient?: NdArray },
): Applied => {
  const [result] = runRanks(
    (own: Readonly<Record<string, Tensor>>, observed: unknown): [unknown, State] => {
      const first = transformation.init(own);
      const state = statistics === undefined ? first : transformation.observe!(first, { w: observed } as never);
      return transformation.update(own, state, { params: own });
    },
    [[gradients as never, (statistics ?? {}) as never]],
  );
  const [updates, state] = result as unknown as [Arrays, unknown];
  return {
    updates: Object.fromEntries(Object.entries(updates).map(([path, array]) => [path, array.toNumbers()])),
    state,
  };
};

export const scalar = (array: unknown): number => (array as NdArray).item();
