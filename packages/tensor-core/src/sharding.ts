/** Sharding of a tensor along one mesh axis: of P ranks, rank i has the i-th of P equal parts along dimension `dim`. */
export interface Shard {
  readonly axis: string;
  readonly dim: number;
}

/**
 * Sharding of the tensor at each path of a tree: one shard per mesh axis, each along a different dimension; an empty
 * list for a tensor that is replicated on every rank.
 */
export type Sharding = (path: string) => readonly Shard[];

/** Every tensor is replicated on every rank. */
export const unsharded: Sharding = () => [];

/** Mesh axes along which ranks have different parts. */
export const shardAxes = (shards: readonly Shard[]): readonly string[] => shards.map(({ axis }) => axis);
