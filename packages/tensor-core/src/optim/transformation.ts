import { add } from "../functions/elementwise.ts";
import { inPhase } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { type Tree, zipTrees } from "../tree.ts";

/** A tree of tensors of a structure that is not looked at, such as one running average per parameter. */
export type TensorTree = Tree<Tensor>;

/** What a transformation may look at beside the updates. */
export interface UpdateContext<P> {
  readonly params: P;
  /**
   * Derive anew what follows from gradients and is dear, such as roots of their second moments; for those that have
   * such. Default: true.
   */
  readonly refresh?: boolean;
  /** With `refresh`: that nothing of it has been derived before. Default: false. */
  readonly first?: boolean;
}

/** What a step of `observe` does beside running averages. */
export interface ObserveOptions {
  /** Derive anew what follows from statistics and is dear, such as inverses. Default: true. */
  readonly refresh?: boolean;
}

/**
 * A pure step from gradients to updates, or from updates to better updates. Both functions are traced; hyper-parameters
 * live in the closure of the factory, everything that changes lives in `State`.
 *
 * `update` returns updates of the structure, shapes and dtypes it was given, and a state of those it was given, so that
 * a step's outputs are the next step's inputs.
 *
 * Source: the algebra of optax (`GradientTransformation`), generic in its state here, so that callers need no casts.
 */
export interface GradientTransformation<State> {
  // Methods, not function properties: then a list of optimizers of different states is a list of
  // GradientTransformation<unknown>.
  init<P>(params: P): State;
  update<P>(updates: P, state: State, context: UpdateContext<P>): [updates: P, state: State];
  /**
   * Only of what looks at curvature: take in what layers have shown in this step, before `update`. In steps that
   * gather no statistics it is left out.
   *
   * @param statistics means over all ranks, per layer.
   */
  observe?(state: State, statistics: TensorTree, options?: ObserveOptions): State;
}

/** State of a transformation that remembers nothing. */
export type EmptyState = Readonly<Record<string, never>>;

/** A transformation without state. */
export const stateless = (
  update: <P>(updates: P, context: UpdateContext<P>) => P,
): GradientTransformation<EmptyState> => ({
  init: () => ({}),
  update: (updates, state, context) => [update(updates, context), state],
});

/**
 * Apply transformations one after another; the state is the list of theirs.
 *
 * @example const optimizer = chain(clipByGlobalNorm(1), adamw({ learningRate: 3e-4 }));
 */
export const chain = <States extends readonly unknown[]>(
  ...parts: { [K in keyof States]: GradientTransformation<States[K]> }
): GradientTransformation<States> => {
  const list: readonly GradientTransformation<unknown>[] = parts;
  list.forEach((part, i) => {
    if (typeof part?.init !== "function" || typeof part.update !== "function")
      throw new ArgumentError(
        `chain: part ${i + 1} is ${describe(part)}; give transformations one by one: chain(clipByGlobalNorm(1), adam({ learningRate: 0.001 }))`,
      );
  });
  const requireState = (caller: string, state: unknown, call: string): void => {
    if (!Array.isArray(state) || state.length !== list.length)
      throw new ArgumentError(
        `${caller}: its state is ${describe(state)}, but it is what init() or the last update() returned; call ${call}`,
      );
  };
  const observing = list.some(({ observe }) => observe !== undefined);
  return {
    init: (params) => list.map((part) => part.init(params)) as unknown as States,
    ...(observing && {
      observe: (state: States, statistics: TensorTree, options?: ObserveOptions): States => {
        requireState("observe", state, "observe(state, statistics)");
        return inPhase("update", () =>
          list.map((part, i) => part.observe?.(state[i], statistics, options) ?? state[i]),
        ) as unknown as States;
      },
    }),
    update: (updates, state, context) => {
      const call = "call update(gradients, state, { params })";
      requireState("update", state, "update(gradients, state, { params })");
      if (context?.params === undefined)
        throw new ArgumentError(
          `update: what it may look at is ${describe(context)}, but holds the parameters; ${call}`,
        );
      return inPhase("update", () => {
        let current = updates;
        const next = list.map((part, i) => {
          const [after, own] = part.update(current, state[i], context);
          current = after;
          return own;
        });
        return [current, next as unknown as States];
      });
    },
  };
};

/** `params + updates`, leaf by leaf. Optimizers return updates that already point downhill. */
export const applyUpdates = <P>(params: P, updates: P): P =>
  inPhase("update", () => zipTrees((param: Tensor, update: Tensor) => add(param, update), params, updates));
