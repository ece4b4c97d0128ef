import { ConfigError } from "@skein/cli/node";
import { type Job, needsWholeMatrices } from "@skein/job/node";
import type { ModelLayers, StackDims } from "@skein/second-order";
import { flattenTree, leafPaths, type Sharding, type TensorSpec } from "@skein/tensor-core";

/**
 * Returns a function that maps the path of a trained parameter to the number of leading dimensions that index separate
 * matrices. The number follows from the layers that read the parameter. Layers are searched only if the job's optimizer
 * needs matrices and a parameter has more than two dimensions.
 *
 * @param trained tree of specs.
 * @param sharding sharding of the parameters over ranks.
 * @throws ConfigError if ranks shard a dimension of a matrix.
 */
export const stackDimsOf = (
  { optimizer }: Pick<Job, "optimizer">,
  trained: unknown,
  sharding: Sharding,
  find: () => ModelLayers,
): StackDims => {
  if (!needsWholeMatrices(optimizer)) return () => 0;
  const { leaves } = flattenTree<TensorSpec>(trained);
  const mayStack = leaves.some(({ shape }) => shape.length > 2);
  const stacks: ModelLayers["stacks"] = mayStack ? find().stacks : new Map();
  const stackDims: StackDims = (path) => stacks.get(path) ?? 0;
  for (const [i, path] of leafPaths(trained).entries())
    for (const { axis, dim } of sharding(path))
      if (leaves[i]!.shape.length > 1 && dim >= stackDims(path))
        throw new ConfigError([
          `optimizer.kind: ${optimizer.kind} reads ${path} [${leaves[i]!.shape.join(", ")}] as one matrix, but ranks along mesh.${axis} shard its dimension ${dim}; use adamw, or mesh: {${axis}: 1}`,
        ]);
  return stackDims;
};
