import { add } from "../functions/elementwise.ts";
import { inPhase } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { type Tree, zipTrees } from "../tree.ts";

/** A tree of tensors of unspecified structure, such as one running average per parameter. */
export type TensorTree = Tree<Tensor>;

/** Inputs of an update other than the updates and the state. */
export interface UpdateContext<P> {
  readonly params: P;
  /**
   * Whether to recompute values that are expensive to derive from gradients, such as roots of their second moments;
   * ignored by transformations without such values. Default: true.
   */
  readonly refresh?: boolean;
  /** With `refresh`: whether this is the first computation of such values. Default: false. */
  readonly first?: boolean;
}

/** Options of `observe`. */
export interface ObserveOptions {
  /** Whether to recompute values that are expensive to derive from statistics, such as inverses. Default: true. */
  readonly refresh?: boolean;
}

/**
 * A pure step from gradients to updates, or from updates to better updates. Both functions are traced. Hyperparameters
 * are captured by the closure of the factory; everything that changes is in `State`.
 *
 * `update` returns updates and a state with the same structure, shapes and dtypes as its arguments, so that the outputs
 * of a step are the inputs of the next step.
 *
 * Source: the algebra of optax (`GradientTransformation`), generic in its state here, so that callers need no casts.
 */
export interface GradientTransformation<State> {
  // Methods, not function properties: then a list of optimizers with different states is assignable to a list of
  // GradientTransformation<unknown>.
  init<P>(params: P): State;
  update<P>(updates: P, state: State, context: UpdateContext<P>): [updates: P, state: State];
  /**
   * Consume the layer statistics of this step, before `update`. Present only in transformations that use curvature. Not
   * called in steps without statistics.
   *
   * @param statistics means over all ranks, per layer.
   */
  observe?(state: State, statistics: TensorTree, options?: ObserveOptions): State;
}

/** State of a transformation without state. */
export type EmptyState = Readonly<Record<string, never>>;

/** A transformation without state. */
export const stateless = (
  update: <P>(updates: P, context: UpdateContext<P>) => P,
): GradientTransformation<EmptyState> => ({
  init: () => ({}),
  update: (updates, state, context) => [update(updates, context), state],
});

/**
 * Apply transformations in sequence; the state is the list of their states.
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
        `chain: part ${i + 1} is ${describe(part)}; pass transformations as separate arguments: chain(clipByGlobalNorm(1), adam({ learningRate: 0.001 }))`,
      );
  });
  const requireState = (caller: string, state: unknown, call: string): void => {
    if (!Array.isArray(state) || state.length !== list.length)
      throw new ArgumentError(
        `${caller}: its state is ${describe(state)}, but it must be the state that init() or the last update() returned; call ${call}`,
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
          `update: its context is ${describe(context)}, but it must have the parameters; ${call}`,
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

/** `params + updates`, leaf by leaf. Updates of optimizers already point in the descent direction. */
export const applyUpdates = <P>(params: P, updates: P): P =>
  inPhase("update", () => zipTrees((param: Tensor, update: Tensor) => add(param, update), params, updates));
