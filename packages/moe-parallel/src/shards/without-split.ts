// Shapes: T tokens common to N ranks, K choices per token, E experts, D token width.
import {
  add,
  allGather,
  allReduce,
  arange,
  broadcastTo,
  gather,
  less,
  multiply,
  ownShard,
  reshape,
  scope,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { denseDispatcher } from "../dispatch/dense-dispatcher.ts";
import type { DispatchSizes, TokenDispatcher } from "../dispatch/token-dispatcher.ts";
import type { Order } from "../order.ts";
import { checkShardAxes, type ExpertShards, numShardsOf, type ShardAxes } from "./expert-shards.ts";

/**
 * Returns the slot assignment (order) of a batch that repeats the tokens of `order` `numTimes` times. At each expert,
 * the slots of a repetition follow the slots of the previous repetition.
 */
export const repeatOrder = (order: Order, numTimes: number): Order => {
  const { experts_TK, slots_TK, weights_TK, kept_E, greatestLoad } = order;
  const [numTokens, numChoices] = experts_TK.shape as [number, number];
  const repeated = (each_TK: Tensor): Tensor =>
    reshape(broadcastTo(reshape(each_TK, [1, numTokens, numChoices]), [numTimes, numTokens, numChoices]), [
      -1,
      numChoices,
    ]);
  const kept_TK = gather(kept_E, experts_TK, { outside: "zero" });
  const before_NTK = multiply(reshape(arange(numTimes), [numTimes, 1, 1]), kept_TK);
  const slots_NTK = where(less(slots_TK, 0), -1, add(slots_TK, before_NTK));
  return {
    experts_TK: repeated(experts_TK),
    slots_TK: reshape(slots_NTK, [-1, numChoices]),
    weights_TK: repeated(weights_TK),
    kept_E: multiply(kept_E, numTimes),
    greatestLoad: multiply(greatestLoad, numTimes),
  };
};

/**
 * Returns a dispatcher that sends the tokens of all N ranks to the experts, and returns the results for this rank's
 * tokens.
 */
const gatheringDispatcher = <Metadata>(
  dispatcher: TokenDispatcher<Metadata>,
  shards: ShardAxes,
): TokenDispatcher<Metadata> => {
  const sizesOfAll = (sizes: DispatchSizes): DispatchSizes => {
    const numTimes = numShardsOf(shards, sizes.axis);
    return { ...sizes, numTokens: numTimes * sizes.numTokens, slots: numTimes * sizes.slots };
  };
  return {
    dispatch: (x_TD, order, sizes) => {
      const x_NTD = scope("dispatch", () => allGather(x_TD, shards.axis));
      const ofAll = scope("order", () => repeatOrder(order, numShardsOf(shards, sizes.axis)));
      return dispatcher.dispatch(x_NTD, ofAll, sizesOfAll(sizes));
    },
    combine: (outputs, metadata, sizes) => {
      const whole = scope("combine", () => outputs.map((y_SD) => allReduce(y_SD, shards.axis)));
      const y_NTD = dispatcher.combine(whole, metadata, sizesOfAll(sizes));
      return scope("inverse-order", () => ownShard(y_NTD, { axis: shards.axis, dim: 0 }));
    },
  };
};

/**
 * Baseline sharding schedule without a split. Each of the N ranks that share an expert gates all T common tokens. The
 * tokens of all N ranks are gathered and sent to the ranks of their experts. These ranks add the partial sums of the
 * shards, and send all results back. Each rank uses only the results of its tokens. Experts process every token N
 * times, which `splitBeforeGate` and `splitAfterGate` avoid. Included for comparison.
 *
 * Cost: an all-gather of N·T tokens over the shards' axis; the cost of the dispatcher along the experts' axis for N·T
 * tokens; an all-reduce of the experts' rows over the shards' axis; N times the experts' flops.
 * @throws ArgumentError if the axes are equal.
 * @example
 * ```ts
 * const shards = withoutSplit({ axis: "tensor", productAxis: "expert-shards" });
 * console.log(shards.splits); // false
 * ```
 * Source: Rajbhandari et al. 2022 (DeepSpeed-MoE), arXiv 2201.05596, expert slicing; the baseline of Parm (INFOCOM
 * 2024).
 */
export const withoutSplit = (axes: ShardAxes): ExpertShards => {
  checkShardAxes("withoutSplit", axes);
  return {
    ...axes,
    gates: "same",
    splits: false,
    dispatcherFor: (given = denseDispatcher()) => gatheringDispatcher(given, axes),
  };
};
