import { ArgumentError } from "../errors.ts";
import { add, divide, full, minimum, multiply, sqrt, square } from "../functions/elementwise.ts";
import { sum } from "../functions/reduce.ts";
import type { Tensor } from "../graph/tensor.ts";
import { flattenTree, zipTrees } from "../tree.ts";
import { type EmptyState, type GradientTransformation, stateless } from "./transformation.ts";

/** Euclidean norm over all values of all leaves, f32 scalar. */
export const globalNorm = (tree: unknown): Tensor =>
  sqrt(
    flattenTree<Tensor>(tree)
      .leaves.map((leaf) => sum(square(leaf)))
      .reduce((total, term) => add(total, term), full([], 0)),
  );

/**
 * Scale all updates by `min(1, maxNorm / norm)`, so that their global norm is at most `maxNorm` and their direction
 * stays. A norm of NaN makes every update NaN: a step with bad gradients must be caught before, not hidden.
 *
 * Source: Pascanu et al. 2013, arXiv 1211.5063, Algorithm 1.
 */
export const clipByGlobalNorm = (maxNorm: number): GradientTransformation<EmptyState> => {
  if (!(maxNorm > 0))
    throw new ArgumentError(`clipByGlobalNorm: a norm of at most ${maxNorm} was asked for; use a positive number`);
  return stateless((updates) => {
    const factor = minimum(divide(maxNorm, globalNorm(updates)), 1);
    return zipTrees((update: Tensor) => multiply(update, factor), updates);
  });
};
