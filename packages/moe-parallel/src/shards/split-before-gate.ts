// Shapes: T tokens of this rank, K choices of a token, P ranks that share out E experts, e = E / P of a rank, N ranks
// that share out each of them.
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
 * An order in which each shard is an expert: a token that chose an expert goes to all N of its shards, into the same
 * slot and for the same weight, so that their summands add up to its output. Along the product of both axes rank
 * r · N + n has the n-th shards of the experts of rank r, by their places.
 *
 * Cost: a pass over T·K·N numbers.
 */
export const orderOfShards = (
  order: Order,
  { own, numShards }: { readonly own: number; readonly numShards: number },
): Order => {
  const { experts_TK, slots_TK, weights_TK, kept_E, greatestLoad } = order;
  const [numTokens, numChoices] = experts_TK.shape as [number, number];
  const ofShards = (each_TK: Tensor): Tensor => {
    const shape = [numTokens, numChoices, numShards];
    return reshape(broadcastTo(reshape(each_TK, [numTokens, numChoices, 1]), shape), [numTokens, -1]);
  };
  // Place r·e + i becomes (r·N + n)·e + i.
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
 * Send tokens straight to all shards of their experts, along the product of both axes, whatever way the dispatcher
 * takes: one fused exchange in place of one over the experts' ranks and a gathering over the shards'. On the way back
 * summands of shards are added up where a dispatcher adds: at home, or before the slow link.
 */
const toAllShards = <Metadata>(dispatcher: TokenDispatcher<Metadata>, shards: ShardAxes): TokenDispatcher<Metadata> => {
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
      orderOfShards(order, { own: numExperts / axisSize(axis), numShards: numShardsOf(shards, axis) }),
    );
  const { throughApart } = dispatcher;
  return {
    dispatch: (x_TD, order, sizes) => dispatcher.dispatch(x_TD, ofShards(order, sizes), sizesOfShards(sizes)),
    combine: (done, metadata, sizes) => dispatcher.combine(done, metadata, sizesOfShards(sizes)),
    ...(throughApart && {
      throughApart: (x_TD, order, sizes, work) =>
        throughApart(x_TD, ofShards(order, sizes), sizesOfShards(sizes), work),
    }),
  };
};

export interface SplitBeforeGateOptions extends ShardAxes {
  /**
   * Whether the ranks of `axis` come with the same tokens, which the layer splits and gathers again, or each with its
   * own, which are split already. Default: same.
   */
  readonly tokens?: "same" | "own";
}

/**
 * Each of the N ranks that share an expert out gates T / N of the tokens that they have alike, and sends them straight
 * to all shards of their experts; outputs are gathered at the very end. Works with every dispatcher: one over levels
 * names the axes whose product is `productAxis`.
 *
 * Cost: that of the dispatcher along the product axis for T / N tokens, K·N choices and E·N experts; with the same
 * tokens an all-gather of T tokens.
 * @throws ArgumentError for axes that are no two, and tokens that are neither.
 * @example moeLayer({ gate, experts, shards: splitBeforeGate({ axis: "tensor", productAxis: "expert-shards" }) })
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
    dispatcherFor: (given = denseDispatcher()) => toAllShards(given, axes),
  };
};
