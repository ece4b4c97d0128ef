import type { ModelLayers, StackDims } from "@skein/second-order";
import { flattenTree, type TensorSpec } from "@skein/tensor-core";
import type { Job } from "../job/job.ts";
import { looksAtWholes } from "../job/mesh-schema.ts";

/**
 * Which trained parameters are stacks of matrices for the optimizer of a job, as the layers that read them say. Layers
 * are looked for only if the optimizer looks at matrices and a parameter has more than two dimensions.
 *
 * @param trained tree of specs.
 */
export const stackDimsOf = (
  { optimizer }: Pick<Job, "optimizer">,
  trained: unknown,
  find: () => ModelLayers,
): StackDims => {
  const mayStack = flattenTree<TensorSpec>(trained).leaves.some(({ shape }) => shape.length > 2);
  if (!mayStack || !looksAtWholes(optimizer)) return () => 0;
  const { stacks } = find();
  return (path) => stacks.get(path) ?? 0;
};
