import { emit } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Return tensors unchanged, and prevent optimizations across the barrier: passes do not fold, fuse or move operators
 * across a barrier, and never merge two barriers. All operands are computed before any node that reads a result.
 *
 * Used for recomputation: nodes that are recomputed in the backward pass read their operands through a barrier. In the
 * backward pass, cotangents pass through a separate barrier.
 *
 * Cost: none; results share the memory of the operands. An operand stays alive until the barrier, even if its result is
 * unused.
 * Source: `jax.lax.optimization_barrier`.
 * @example const [x, y] = optimizationBarrier(a, b);
 */
export const optimizationBarrier = (...tensors: readonly Tensor[]): Tensor[] =>
  tensors.length === 0 ? [] : emit("optimization-barrier", tensors);
