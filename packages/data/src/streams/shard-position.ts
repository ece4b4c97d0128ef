/**
 * Position of a sample in a shard, in the units of the shard's reader: `offset` in bytes or rows, and from there `skip`
 * samples or tokens.
 */
export interface ShardPosition {
  readonly offset: number;
  readonly skip: number;
}

export const shardBegin: ShardPosition = { offset: 0, skip: 0 };

/** A sample of a shard and its position. */
export interface ShardSample<Of> {
  readonly sample: Of;
  readonly position: ShardPosition;
}

/**
 * Reads the samples of a shard in order, beginning at a position returned earlier. Reading again gives the same
 * samples.
 */
export type ShardReader<Of> = (shard: number, from: ShardPosition) => AsyncIterable<ShardSample<Of>>;
