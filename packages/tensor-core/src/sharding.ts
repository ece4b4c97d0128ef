/** How a tensor is shared out: of P ranks along a mesh axis, rank i has the i-th of P equal parts along a dimension. */
export interface Shard {
  readonly axis: string;
  readonly dim: number;
}

/** How the tensor at each path of a tree is shared out; undefined for one that every rank has whole. */
export type Sharding = (path: string) => Shard | undefined;

/** Every rank has everything. */
export const unsharded: Sharding = () => undefined;
