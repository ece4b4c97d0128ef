// Symbols: N ranks that share out the hidden width F of each expert, P ranks that share out the experts.
import { ArgumentError } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { TokenDispatcher } from "../dispatch/token-dispatcher.ts";

export interface ShardAxes {
  /** Axis of the mesh whose ranks have each a part of the hidden width of all experts that one of them has. */
  readonly axis: string;
  /**
   * Axis of the mesh that is the product of the experts' axis and this one: along it ranks are numbered by their place
   * among the experts, those that have shards of the same ones side by side.
   */
  readonly productAxis: string;
}

/**
 * How ranks share each expert out by itself, beside sharing out the experts: who does what of the work on tokens that N
 * ranks have alike. `splitBeforeGate`, `splitAfterGate` and `withoutSplit` make one.
 */
export interface ExpertShards extends ShardAxes {
  /** Whether ranks of `axis` gate the same tokens, with the same key, or each its own. */
  readonly gates: "same" | "own";
  /** Whether a layer gets the same tokens on these ranks and splits them before the gate, to gather them at the end. */
  readonly splits: boolean;
  /**
   * How tokens travel to all shards of their experts, whose outputs are summands.
   *
   * @param given the way that the layer was given, if any.
   */
  dispatcherFor(given: TokenDispatcher | undefined): TokenDispatcher;
}

/** @throws ArgumentError for axes that are no two. */
export const checkShardAxes = (fn: string, { axis, productAxis }: ShardAxes): void => {
  if (axis === productAxis)
    throw new ArgumentError(
      `${fn}: axis "${axis}" of the shards is named as its product with that of the experts, too; give the mesh another axis for it`,
    );
};

/** @returns N. @throws ArgumentError where the axes do not make up their product. */
export const numShardsOf = ({ axis, productAxis }: ShardAxes, expertAxis: string): number => {
  const [numShards, numRanks, product] = [axisSize(axis), axisSize(expertAxis), axisSize(productAxis)];
  if (numShards * numRanks !== product)
    throw new ArgumentError(
      `moeLayer: ${numRanks} ranks along "${expertAxis}" × ${numShards} along "${axis}" are ${numRanks * numShards}, but axis "${productAxis}" has ${product}; name the axis that is their product`,
    );
  return numShards;
};
