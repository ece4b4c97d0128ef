import { flattenTree, optimizationBarrier, type Tensor, unflattenTree } from "@skein/tensor-core";

/**
 * Separates the computation of replicated tensors from their later uses with an optimization barrier. Use it if ranks
 * have equal tensors and then use them differently. Without the barrier, fusion could round a product differently on a
 * rank that reads it twice than on a rank that reads it once, and replicas would diverge. Every rank must read at least
 * one of the results.
 */
export const replicaBarrier = <T>(tree: T): T => {
  const { leaves, structure } = flattenTree<Tensor>(tree);
  return unflattenTree<T>(structure, optimizationBarrier(...leaves));
};
