// Symbols: N ranks that shard the hidden width F of each expert, P ranks over which experts are distributed.
import { ArgumentError } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { TokenDispatcher } from "../dispatch/token-dispatcher.ts";

export interface ShardAxes {
  /** Mesh axis along which the hidden width of a rank's experts is sharded. */
  readonly axis: string;
  /**
   * Mesh axis that is the product of the experts' axis and this axis. Ranks are numbered first by their index along the
   * experts' axis, so ranks with shards of the same experts are adjacent.
   */
  readonly productAxis: string;
}

/**
 * Sharding of each expert over N ranks (tensor parallelism), in addition to the distribution of experts. Determines how
 * the N ranks divide the work on their common tokens. `splitBeforeGate`, `splitAfterGate` and `withoutSplit` return an
 * implementation.
 */
export interface ExpertShards extends ShardAxes {
  /**
   * Whether all ranks along `axis` gate the same tokens with the same key ("same"), or each rank gates different tokens
   * ("own").
   */
  readonly gates: "same" | "own";
  /**
   * Whether the layer gets the same tokens on all ranks along `axis`, splits the tokens before the gate, and gathers
   * the outputs at the end.
   */
  readonly splits: boolean;
  /**
   * Returns a dispatcher that sends tokens to all shards of their experts. Each shard outputs a partial sum.
   *
   * @param given dispatcher option of the layer. Undefined: the option is not set.
   */
  dispatcherFor(given: TokenDispatcher | undefined): TokenDispatcher;
}

/** Throws ArgumentError if the two axes of a sharding are equal. */
export const checkShardAxes = (fn: string, { axis, productAxis }: ShardAxes): void => {
  if (axis === productAxis)
    throw new ArgumentError(
      `${fn}: axis "${axis}" is both the axis of the shards and the product axis; use another mesh axis for the product`,
    );
};

/**
 * Returns N, the number of shards. Throws ArgumentError if the sizes of the two axes do not match the size of the
 * product axis.
 */
export const numShardsOf = ({ axis, productAxis }: ShardAxes, expertAxis: string): number => {
  const [numShards, numRanks, product] = [axisSize(axis), axisSize(expertAxis), axisSize(productAxis)];
  if (numShards * numRanks !== product)
    throw new ArgumentError(
      `moeLayer: ${numRanks} ranks along "${expertAxis}" × ${numShards} along "${axis}" are ${numRanks * numShards}, but axis "${productAxis}" has ${product}; name an axis with that product`,
    );
  return numShards;
};
