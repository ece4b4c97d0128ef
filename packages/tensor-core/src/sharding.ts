/** Sharding of a tensor along one mesh axis of P ranks: rank i has the i-th of P equal parts along dimension `dim`. */
export interface Shard {
  readonly axis: string;
  readonly dim: number;
}

/**
 * Function from the path of a tensor in a tree to its shards: at most one per mesh axis, each along a different
 * dimension. An empty list means that the tensor is replicated on all ranks.
 */
export type Sharding = (path: string) => readonly Shard[];

/** Sharding that replicates all tensors on all ranks. */
export const unsharded: Sharding = () => [];

/** Returns the mesh axes along which a tensor is sharded. */
export const shardAxes = (shards: readonly Shard[]): readonly string[] => shards.map(({ axis }) => axis);
