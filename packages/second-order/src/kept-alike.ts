import { flattenTree, optimizationBarrier, type Tensor, unflattenTree } from "@skein/tensor-core";

/**
 * Keep what computes these tensors apart from what reads them from here on: for ranks that hold them alike and do
 * different things with them. Without it a product that one rank reads twice and another once is rounded in two ways,
 * and what all ranks hold alike drifts apart. Every rank has to read one of the results.
 */
export const keptAlike = <T>(tree: T): T => {
  const { leaves, structure } = flattenTree<Tensor>(tree);
  return unflattenTree<T>(structure, optimizationBarrier(...leaves));
};
