import { emit } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Return tensors unchanged, and prevent optimizations across the barrier: no pass folds, fuses or moves an operator
 * across it, and two barriers are never merged. All operands are computed before any node that reads a result.
 *
 * Values that are recomputed on purpose (in the backward pass, instead of being kept) read their operands through a
 * barrier. Cotangents pass through a separate barrier.
 *
 * Cost: none; results share the memory of the operands. An operand stays alive until the barrier, even if its result is
 * unused.
 * Source: `jax.lax.optimization_barrier`.
 * @example const [x, y] = optimizationBarrier(a, b);
 */
export const optimizationBarrier = (...tensors: readonly Tensor[]): Tensor[] =>
  tensors.length === 0 ? [] : emit("optimization-barrier", tensors);
