import { emit } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Return tensors as they are, and let nothing of what computes them be merged with what reads the results: no pass
 * folds, fuses or moves an operator across, and no two barriers become one. All operands are computed before anything
 * that reads a result.
 *
 * What is computed twice on purpose (again in backward, instead of being kept) reads its operands through one.
 * Cotangents pass a barrier of their own.
 *
 * Cost: nothing; results lie where the operands lie. An operand lives until the barrier, even where nobody reads its
 * result.
 * Source: `jax.lax.optimization_barrier`.
 * @example const [x, y] = optimizationBarrier(a, b);
 */
export const optimizationBarrier = (...tensors: readonly Tensor[]): Tensor[] =>
  tensors.length === 0 ? [] : emit("optimization-barrier", tensors);
