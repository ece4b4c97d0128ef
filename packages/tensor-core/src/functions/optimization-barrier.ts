import { emit } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Returns tensors unchanged, and prevents optimizations across the barrier: passes do not fold, fuse or move operators
 * across a barrier, and never merge two barriers. All operands are computed before any node that reads a result.
 *
 * Used for recomputation: nodes that are recomputed in the backward pass read their operands through a barrier. In the
 * backward pass, cotangents pass through a separate barrier.
 *
 * Cost: none; results share the memory of the operands. An operand stays alive until the barrier, even if its result is
 * unused.
 * @example
 * ```ts
 * const both = (x: Tensor) => optimizationBarrier(add(x, 1), multiply(x, 2));
 * const [sum, product] = await evaluate(both, referenceBackend())(NdArray.from([3]));
 * console.log(sum!.toNumbers(), product!.toNumbers()); // [4] [6]
 * ```
 * Source: `jax.lax.optimization_barrier`.
 */
export const optimizationBarrier = (...tensors: readonly Tensor[]): Tensor[] =>
  tensors.length === 0 ? [] : emit("optimization-barrier", tensors);
