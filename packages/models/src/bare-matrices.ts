import type { Tensor } from "@skein/tensor-core";
import type { Projection } from "./projection.ts";
import type { Branch } from "./transformer-block.ts";

/**
 * Wraps a branch without biases: its matrices become plain tensors in fields of the block's parameters, with dimensions
 * along which ranks may shard them.
 *
 * @param names Field name of each matrix.
 * @param output Name of the matrix that computes the output of the branch. All other matrices multiply the input of the
 * branch.
 */
export const bareMatrices = <Name extends string, Field extends string>(
  branch: Branch<Readonly<Record<Name, Projection>>>,
  names: Readonly<Record<Name, Field>>,
  output: NoInfer<Name>,
): Branch<Readonly<Record<Field, Tensor>>> => {
  const pairs = Object.entries(names) as [Name, Field][];
  return {
    name: branch.name,
    shardDims: Object.fromEntries(pairs.map(([name, field]) => [field, name === output ? 0 : 1])),
    init: (key) => {
      const params = branch.init(key);
      return Object.fromEntries(pairs.map(([name, field]) => [field, params[name].weight])) as Record<Field, Tensor>;
    },
    apply: (params, x_BTD, context) => {
      const projections = pairs.map(([name, field]) => [name, { weight: params[field] }]);
      return branch.apply(Object.fromEntries(projections) as Record<Name, Projection>, x_BTD, context);
    },
  };
};
