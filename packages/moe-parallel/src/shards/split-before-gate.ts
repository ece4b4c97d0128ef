// Shapes: T tokens of this rank, K choices per token, P ranks over which E experts are distributed, e = E / P experts
// per rank, N ranks that share each expert.
import {
  add,
  arange,
  ArgumentError,
  broadcastTo,
  divide,
  less,
  multiply,
  reshape,
  scope,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { denseDispatcher } from "../dispatch/dense-dispatcher.ts";
import type { DispatchSizes, TokenDispatcher } from "../dispatch/token-dispatcher.ts";
import type { Order } from "../order.ts";
import { checkShardAxes, type ExpertShards, numShardsOf, type ShardAxes } from "./expert-shards.ts";

/**
 * Converts a slot assignment (order) for experts to a slot assignment in which each shard counts as an expert. A token
 * that chose an expert is sent to all N shards of the expert, into the same slot and with the same weight. The partial
 * sums then add up to the expert's output. Along the product axis, rank r · N + n has shard n of rank r's experts, in
 * order of position.
 *
 * Cost: a pass over T·K·N numbers.
 */
export const toShardOrder = (
  order: Order,
  { own, numShards }: { readonly own: number; readonly numShards: number },
): Order => {
  const { experts_TK, slots_TK, weights_TK, kept_E, greatestLoad } = order;
  const [numTokens, numChoices] = experts_TK.shape as [number, number];
  const ofShards = (each_TK: Tensor): Tensor => {
    const shape = [numTokens, numChoices, numShards];
    return reshape(broadcastTo(reshape(each_TK, [numTokens, numChoices, 1]), shape), [numTokens, -1]);
  };
  // Position r·e + i becomes (r·N + n)·e + i.
  const first_TK1 = reshape(add(experts_TK, multiply(divide(experts_TK, own), own * (numShards - 1))), [
    numTokens,
    numChoices,
    1,
  ]);
  const shards_TKN = where(less(first_TK1, 0), -1, add(first_TK1, multiply(arange(numShards), own)));
  const kept_P1e = reshape(kept_E, [-1, 1, own]);
  return {
    experts_TK: reshape(shards_TKN, [numTokens, -1]),
    slots_TK: ofShards(slots_TK),
    weights_TK: ofShards(weights_TK),
    kept_E: reshape(broadcastTo(kept_P1e, [kept_P1e.shape[0]!, numShards, own]), [-1]),
    greatestLoad,
  };
};

/**
 * Returns a dispatcher that sends tokens directly to all shards of their experts, along the product axis, with any
 * underlying dispatcher. One fused exchange replaces an exchange over the experts' axis and an all-gather over the
 * shards' axis. On the way back, the underlying dispatcher sums the partial results, either on the token's rank or
 * before the slow link.
 */
const shardDispatcher = <Metadata>(
  dispatcher: TokenDispatcher<Metadata>,
  shards: ShardAxes,
): TokenDispatcher<Metadata> => {
  const sizesOfShards = (sizes: DispatchSizes): DispatchSizes => {
    const numShards = numShardsOf(shards, sizes.axis);
    return {
      ...sizes,
      numExperts: sizes.numExperts * numShards,
      numChoices: sizes.numChoices * numShards,
      choicesPerRank: sizes.numChoices,
      axis: shards.productAxis,
    };
  };
  const ofShards = (order: Order, { numExperts, axis }: DispatchSizes): Order =>
    scope("order", () =>
      toShardOrder(order, { own: numExperts / axisSize(axis), numShards: numShardsOf(shards, axis) }),
    );
  const { runWithBackwardChunks } = dispatcher;
  return {
    dispatch: (x_TD, order, sizes) => dispatcher.dispatch(x_TD, ofShards(order, sizes), sizesOfShards(sizes)),
    combine: (outputs, metadata, sizes) => dispatcher.combine(outputs, metadata, sizesOfShards(sizes)),
    ...(runWithBackwardChunks && {
      runWithBackwardChunks: (x_TD, order, sizes, work) =>
        runWithBackwardChunks(x_TD, ofShards(order, sizes), sizesOfShards(sizes), work),
    }),
  };
};

export interface SplitBeforeGateOptions extends ShardAxes {
  /**
   * Whether the ranks along `axis` have the same tokens, which the layer splits and gathers ("same"), or each rank has
   * different tokens ("own"). Default: "same".
   */
  readonly tokens?: "same" | "own";
}

/**
 * Sharding schedule that splits before the gate. Each of the N ranks that share an expert gates T / N of the common
 * tokens, and sends them directly to all shards of their experts. Outputs are gathered at the end. Works with every
 * dispatcher; a level dispatcher needs axes whose product is `productAxis`.
 *
 * Cost: the cost of the dispatcher along the product axis for T / N tokens, K·N choices and E·N experts; with `tokens`
 * "same", also an all-gather of T tokens.
 * @throws ArgumentError if the axes are equal, or `tokens` has another value.
 * @example
 * ```ts
 * const shards = splitBeforeGate({ axis: "tensor", productAxis: "expert-shards" });
 * const experts = geluExperts({ width: 4, hidden: 8 });
 * const moe = moeLayer({ gate: switchGate({ width: 4, numExperts: 2 }), experts, shards });
 * console.log(shards.splits, moe.needsWhole); // true false
 * ```
 * Source: Parm (INFOCOM 2024), schedule S1 with its fused EP&ESP-AlltoAll.
 */
export const splitBeforeGate = ({ tokens = "same", ...axes }: SplitBeforeGateOptions): ExpertShards => {
  checkShardAxes("splitBeforeGate", axes);
  if (tokens !== "same" && tokens !== "own")
    throw new ArgumentError(`splitBeforeGate: tokens are ${String(tokens)}; use same or own`);
  return {
    ...axes,
    gates: "own",
    splits: tokens === "same",
    dispatcherFor: (given = denseDispatcher()) => shardDispatcher(given, axes),
  };
};
