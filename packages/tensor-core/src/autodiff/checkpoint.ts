import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { currentTrace } from "../graph/emit.ts";

/**
 * Recomputes the intermediates of a function in the backward pass instead of keeping them: less memory, more time.
 *
 * Three kinds of values are kept: inputs of `fn`, results of `fn` that other forward nodes read, and collective
 * results, because collectives are never repeated. All other values that derivatives read are recomputed directly
 * before use; random numbers are reproduced from their keys. Checkpoints may be nested: intermediates of an inner
 * checkpoint are then recomputed once more for the backward pass of the outer checkpoint. See `recomputeRegions`.
 *
 * Loss and gradients are bitwise identical with and without checkpoints. Exception: in builds with fused multiply-add,
 * a product and a sum in the same fused kernel are rounded once, and checkpoints may change which nodes are fused.
 *
 * Cost: up to one more forward pass of `fn`. `checkpoint` has no effect without differentiation.
 * @example
 * ```ts
 * const block = checkpoint((x: Tensor) => tanh(tanh(x))); // intermediate values are recomputed in the backward pass
 * const gradient = (x: Tensor) => valueAndGrad((y: Tensor) => sum(block(y)))(x)[1];
 * console.log((await evaluate(gradient, referenceBackend())(NdArray.from([0]))).toNumbers()); // [1]
 * ```
 * Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174; `jax.checkpoint`.
 */
export const checkpoint = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
): ((...args: Args) => Result) => {
  if (typeof fn !== "function")
    throw new ArgumentError(`checkpoint: got ${describe(fn)} instead of a function; write checkpoint(fn)(x)`);
  return (...args) => {
    const state = currentTrace("checkpoint");
    const outer = state.region;
    const own = state.numRegions++;
    state.region = outer === "" ? String(own) : `${outer}/${own}`;
    try {
      return fn(...args);
    } finally {
      state.region = outer;
    }
  };
};
