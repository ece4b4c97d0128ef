/**
 * Position of a sample in a shard: `offset` in bytes or rows, depending on the reader of the shard, plus `skip` samples
 * or tokens after that offset.
 */
export interface ShardPosition {
  readonly offset: number;
  readonly skip: number;
}

export const shardBegin: ShardPosition = { offset: 0, skip: 0 };

/** A sample of a shard, and its position. */
export interface ShardSample<Of> {
  readonly sample: Of;
  readonly position: ShardPosition;
}

/** Reads the samples of a shard in order, from a position returned earlier. Repeated reads yield equal samples. */
export type ShardReader<Of> = (shard: number, from: ShardPosition) => AsyncIterable<ShardSample<Of>>;
