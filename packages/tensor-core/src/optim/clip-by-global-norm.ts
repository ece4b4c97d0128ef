import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { allReduce } from "../functions/collective.ts";
import { add, divide, full, minimum, multiply, sqrt, square } from "../functions/elementwise.ts";
import { sum } from "../functions/reduce.ts";
import type { Tensor } from "../graph/tensor.ts";
import { type Shard, shardAxes, type Sharding, unsharded } from "../sharding.ts";
import { flattenTree, leafPaths, zipTrees } from "../tree.ts";
import { type EmptyState, type GradientTransformation, stateless } from "./transformation.ts";

/**
 * Computes the Euclidean norm over the elements of all leaves, f32 scalar.
 *
 * @param sharding Sharding of the leaves. The norm of a sharded leaf includes the shards of all ranks. Default:
 * unsharded.
 * @throws ArgumentError if `sharding` is not a function.
 * Cost: one read of all leaves; for each distinct set of sharding axes, an all-reduce of one number along each axis.
 * @example
 * ```ts
 * const norm = await evaluate((w: Tensor) => globalNorm({ w }), referenceBackend())(NdArray.from([3, 4]));
 * console.log(norm.item()); // 5
 * ```
 */
export const globalNorm = (tree: unknown, sharding: Sharding = unsharded): Tensor => {
  if (typeof sharding !== "function")
    throw new ArgumentError(
      `globalNorm: sharding is ${describe(sharding)}; pass a function from a path to a list of { axis, dim }, or leave it out`,
    );
  const { leaves } = flattenTree<Tensor>(tree);
  const paths = leafPaths(tree);
  const axesOfLeaf = (i: number): readonly string[] => {
    const shards: unknown = sharding(paths[i]!);
    const isList = Array.isArray(shards) && shards.every((shard) => typeof shard?.axis === "string");
    if (isList) return shardAxes(shards as readonly Shard[]);
    throw new ArgumentError(
      `globalNorm: the sharding of ${paths[i]} is ${describe(shards)}; return a list of { axis, dim }, empty for a replicated tensor`,
    );
  };
  const sumOf = (some: readonly number[]): Tensor =>
    some.map((i) => sum(square(leaves[i]!))).reduce((total, term) => add(total, term), full([], 0));
  const byAxes = [...Map.groupBy(leaves.keys(), (i) => axesOfLeaf(i).join()).values()];
  const whole = byAxes.map((some) => axesOfLeaf(some[0]!).reduce((part, axis) => allReduce(part, axis), sumOf(some)));
  return sqrt(whole.reduce((total, term) => add(total, term), full([], 0)));
};

/**
 * Scales all updates by `min(1, maxNorm / norm)`, so that their global norm is at most `maxNorm` and their direction is
 * unchanged. If the norm is NaN, all updates become NaN, so that non-finite gradients are not hidden.
 *
 * @param sharding Sharding of the updates, see `globalNorm`.
 * @example
 * ```ts
 * const optimizer = chain(clipByGlobalNorm(1), sgd({ learningRate: 1 }));
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.293', '2.707']
 * ```
 * Source: Pascanu et al. 2013, arXiv 1211.5063, Algorithm 1.
 */
export const clipByGlobalNorm = (
  maxNorm: number,
  sharding: Sharding = unsharded,
): GradientTransformation<EmptyState> => {
  if (!(maxNorm > 0))
    throw new ArgumentError(`clipByGlobalNorm: a norm of at most ${maxNorm} was asked for; use a positive number`);
  return stateless((updates) => {
    const factor = minimum(divide(maxNorm, globalNorm(updates, sharding)), 1);
    return zipTrees((update: Tensor) => multiply(update, factor), updates);
  });
};
