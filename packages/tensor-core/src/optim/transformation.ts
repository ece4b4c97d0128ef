import { add } from "../functions/elementwise.ts";
import { inPhase } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { type Tree, zipTrees } from "../tree.ts";

/** Tree of tensors with unspecified structure, such as one moving average per parameter. */
export type TensorTree = Tree<Tensor>;

/** Additional inputs of `update`. */
export interface UpdateContext<P> {
  readonly params: P;
  /**
   * Whether to recompute values that are expensive to derive from gradients, such as matrix roots of second moments.
   * Ignored by transformations without such values. Default: true.
   */
  readonly refresh?: boolean;
  /**
   * Whether `refresh` computes these values for the first time, so that no earlier values exist. Ignored if `refresh`
   * is false. Default: false.
   */
  readonly first?: boolean;
}

/** Options of `observe`, which processes layer statistics. */
export interface ObserveOptions {
  /** Whether to recompute values that are expensive to derive from statistics, such as inverses. Default: true. */
  readonly refresh?: boolean;
}

/**
 * Pure function from gradients to updates, or from updates to transformed updates. `init` and `update` are traced.
 * Factory functions capture hyperparameters in closures; `State` contains all values that change between steps.
 *
 * `update` returns updates and a state with the same structure, shapes and dtypes as its arguments, so that the outputs
 * of a step are the inputs of the next step.
 *
 * Source: `GradientTransformation` of optax; here the state type is a type parameter, so that callers need no casts.
 */
export interface GradientTransformation<State> {
  // Declared as methods, not function properties, so that optimizers with different state types are assignable to
  // GradientTransformation<unknown>.
  init<P>(params: P): State;
  update<P>(updates: P, state: State, context: UpdateContext<P>): [updates: P, state: State];
  /**
   * Processes the layer statistics of a step; called before `update`. Absent: the transformation does not use
   * curvature. Not called in steps without statistics.
   *
   * @param statistics Statistics of each layer, averaged over all ranks.
   */
  observe?(state: State, statistics: TensorTree, options?: ObserveOptions): State;
}

/** State type of a stateless transformation. */
export type EmptyState = Readonly<Record<string, never>>;

/**
 * Creates a transformation without state.
 *
 * @example
 * ```ts
 * const optimizer = stateless((updates) => mapTree(updates, (x: Tensor) => multiply(sign(x), -0.1)) as never);
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 */
export const stateless = (
  update: <P>(updates: P, context: UpdateContext<P>) => P,
): GradientTransformation<EmptyState> => ({
  init: () => ({}),
  update: (updates, state, context) => [update(updates, context), state],
});

/**
 * Combines transformations into a single transformation that applies all of them in sequence. The state is the list of
 * the states of all transformations.
 *
 * @example
 * ```ts
 * const optimizer = chain(clipByGlobalNorm(1), adamw({ learningRate: 3e-4 }));
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['1.000', '2.000']
 * ```
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

/**
 * Returns `params + updates`, for each leaf. Updates of optimizers already include the negative sign of the descent
 * direction.
 *
 * @example
 * ```ts
 * const add = (w: Tensor, update: Tensor) => applyUpdates({ w }, { w: update }).w;
 * const next = await evaluate(add, referenceBackend())(NdArray.from([1, 2]), NdArray.from([0.5, 0]));
 * console.log(next.toNumbers()); // [1.5, 2]
 * ```
 */
export const applyUpdates = <P>(params: P, updates: P): P =>
  inPhase("update", () => zipTrees((param: Tensor, update: Tensor) => add(param, update), params, updates));
