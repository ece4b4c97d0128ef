import { flattenTree, optimizationBarrier, type Tensor, unflattenTree } from "@skein/tensor-core";

/**
 * Separate the computation of replicated tensors from their later uses with an optimization barrier. For ranks that
 * hold equal tensors and then use them differently. Without the barrier, fusion could round a product in two ways, if
 * one rank reads it twice and another rank once, and replicated values would diverge. Every rank must read one of the
 * results.
 */
export const replicaBarrier = <T>(tree: T): T => {
  const { leaves, structure } = flattenTree<Tensor>(tree);
  return unflattenTree<T>(structure, optimizationBarrier(...leaves));
};
