/**
 * Where in a shard a sample begins, as who reads the shard counts: in bytes or rows, and from there in samples or
 * tokens.
 */
export interface ShardPlace {
  readonly offset: number;
  readonly skip: number;
}

export const shardBegin: ShardPlace = { offset: 0, skip: 0 };

/** A sample of a shard, and where it begins. */
export interface ShardSample<Of> {
  readonly sample: Of;
  readonly place: ShardPlace;
}

/** Samples of a shard from a place on that it has told before, in their order: the same ones whenever they are read. */
export type ShardReader<Of> = (shard: number, from: ShardPlace) => AsyncIterable<ShardSample<Of>>;
