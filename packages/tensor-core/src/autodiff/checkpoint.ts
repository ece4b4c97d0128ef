import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { currentTrace } from "../graph/emit.ts";

/**
 * Compute what is inside of a function again in the backward pass instead of keeping it: memory for time.
 *
 * Kept are the values that it reads from outside, those that others read of it in the forward pass, and the results of
 * collectives, which are never repeated. Everything else that derivatives read of it is computed again, just before it
 * is read: random numbers follow from their keys. Checkpoints may be nested: what is inside of an inner one is then
 * computed once more for the backward pass of the outer one. See `recomputeRegions`.
 *
 * Loss and gradients have the same bits as without, but for builds with fused multiply-add, where a product and a sum
 * are rounded once if they stand in one fused kernel: what is fused with what may be another.
 *
 * Cost: up to one more forward pass of `fn`. Without differentiation it does nothing.
 * Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174; `jax.checkpoint`.
 * @example const y = blocks.reduce((x, block) => checkpoint(applyBlock)(block, x), embedded);
 */
export const checkpoint = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
): ((...args: Args) => Result) => {
  if (typeof fn !== "function")
    throw new ArgumentError(`checkpoint: ${describe(fn)} was given where a function is due; write checkpoint(fn)(x)`);
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
