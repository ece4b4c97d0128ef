/** How a tensor is shared out: of P ranks along a mesh axis, rank i has the i-th of P equal parts along a dimension. */
export interface Shard {
  readonly axis: string;
  readonly dim: number;
}

/**
 * How the tensor at each path of a tree is shared out: along each axis by a dimension of its own; none for one that
 * every rank has whole.
 */
export type Sharding = (path: string) => readonly Shard[];

/** Every rank has everything. */
export const unsharded: Sharding = () => [];

/** The axes along which ranks have different parts. */
export const shardAxes = (shards: readonly Shard[]): readonly string[] => shards.map(({ axis }) => axis);
