// Shapes: T tokens common to N ranks, D token width, P ranks over which E experts are distributed, e = E / P experts
// per rank, C slots per expert for the common tokens, s = ⌈C / N⌉ slots that one of the N ranks sends, c slots per
// chunk.
import {
  allToAll,
  arange,
  ArgumentError,
  axisIndex,
  broadcastTo,
  concat,
  dynamicSlice,
  full,
  multiply,
  reshape,
  scope,
  slice,
  type Tensor,
  transpose,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { chunkRanges } from "../dispatch/chunks.ts";
import { swapBlocks } from "../dispatch/dense-dispatcher.ts";
import { exchangeAndGather } from "../dispatch/exchange-and-gather.ts";
import type { DispatchSizes, TokenDispatcher } from "../dispatch/token-dispatcher.ts";
import { fromRows, assignRows, rowsOf, type RowTokens, toRows } from "../rows.ts";
import { checkCounts } from "../options.ts";
import { checkShardAxes, type ExpertShards, numShardsOf, type ShardAxes } from "./expert-shards.ts";

/** Selects this rank's s slots per expert from N·s slots per expert: i32 [E·s]. */
const ownSlots = (each_R: Tensor, [numExperts, numShards, slots]: readonly number[], axis: string): Tensor =>
  reshape(
    dynamicSlice(reshape(each_R, [numExperts!, numShards!, slots!]), [0, axisIndex(axis), 0], [numExperts!, 1, slots!]),
    [-1],
  );

/** Returns a dispatcher for slots that are equal on N ranks. Each rank sends a part of the slots. */
const slotShareDispatcher = (shards: ShardAxes, numPieces: number): TokenDispatcher<RowTokens> => {
  const { axis, productAxis } = shards;
  const sharedOf = ({ numExperts, slots, axis: expertAxis }: DispatchSizes) => {
    const numShards = numShardsOf(shards, expertAxis);
    const numRanks = axisSize(expertAxis);
    return { numShards, numRanks, own: numExperts / numRanks, each: Math.ceil(slots / numShards) };
  };
  return {
    dispatch: (x_TD, order, sizes) => {
      const { numExperts, numChunks } = sizes;
      const { numShards, numRanks, own, each } = sharedOf(sizes);
      const width = x_TD.shape[1]!;
      const [layout, leaving_EsD] = scope("order", () => {
        const perExpert = numShards * each;
        const firstRow_E = multiply(arange(numExperts), perExpert);
        const all = assignRows(rowsOf(order, firstRow_E), order.weights_TK, numExperts * perExpert);
        const tokens_R = ownSlots(all.tokens_R, [numExperts, numShards, each], axis);
        return [all, reshape(toRows(x_TD, { tokens_R }), [numExperts, each, width])];
      });
      const chunks = chunkRanges(each, numChunks).map(({ begin, end }) =>
        scope("dispatch", () => {
          const leaving = slice(leaving_EsD, [0, begin], [numExperts, end]);
          const ofRanks = reshape(leaving, [numRanks, 1, own * (end - begin), width]);
          const toShards = broadcastTo(ofRanks, [numRanks, numShards, own * (end - begin), width]);
          const rows_SD = swapBlocks(allToAll(reshape(toShards, [-1, width]), productAxis), [
            numRanks * numShards,
            own,
          ]);
          return { rows_SD, counts_e: full([own], numRanks * numShards * (end - begin), "i32") };
        }),
      );
      return { chunks, metadata: layout };
    },
    combine: (outputs, layout, sizes) => {
      const { numExperts, numTokens } = sizes;
      const { numShards, numRanks, own } = sharedOf(sizes);
      const width = outputs[0]!.shape[1]!;
      const rows_RD = scope("combine", () => {
        const returned = outputs.map((rows_SD) => {
          const leaving = swapBlocks(rows_SD, [own, numRanks * numShards]);
          const gathered = exchangeAndGather(leaving, {
            axis: productAxis,
            gatherAxis: axis,
            numSummands: numShards,
            numPieces,
          });
          return reshape(gathered, [numShards, numExperts, -1, width]);
        });
        return reshape(transpose(concat(returned, { dim: 2 }), [1, 0, 2, 3]), [-1, width]);
      });
      return scope("inverse-order", () => fromRows(rows_RD, layout, numTokens));
    },
  };
};

export interface SplitAfterGateOptions extends ShardAxes {
  /**
   * Number of pieces into which each returned chunk is split. One piece is gathered while the next piece is exchanged.
   * Default: 2, the minimum for overlap. Each piece adds the latency of two collectives.
   */
  readonly pieces?: number;
}

/**
 * Sharding schedule that splits after the gate. Each of the N ranks that share an expert gates all T common tokens. For
 * each expert, the rank sends a part of the slots, used or empty, to all shards of the expert, in one exchange along
 * the product axis. Returned rows are summed over shards, and all-gathered over the N ranks while the next piece is
 * exchanged, so that each rank has all slots again. Slots have a fixed size, so no other dispatcher can be used. Chunks
 * are ranges of slots.
 *
 * Cost: `4·E·s·N·D` bytes sent per rank in each direction, minus bytes that stay on the rank, and `4·(N − 1)·E·s·D`
 * bytes for the all-gather, which overlaps with the exchange except for one piece.
 * @throws ArgumentError if the axes are equal, or the number of pieces is not a positive integer.
 * @example
 * ```ts
 * const shards = splitAfterGate({ axis: "tensor", productAxis: "expert-shards" });
 * const experts = geluExperts({ width: 4, hidden: 8 });
 * const moe = moeLayer({ gate: switchGate({ width: 4, numExperts: 2 }), experts, shards });
 * console.log(shards.splits, moe.needsWhole); // false false
 * ```
 * Source: Parm (INFOCOM 2024), schedule S2, reconstructed from its abstract and its released kernel.
 */
export const splitAfterGate = ({ pieces = 2, ...axes }: SplitAfterGateOptions): ExpertShards => {
  checkShardAxes("splitAfterGate", axes);
  checkCounts("splitAfterGate", { pieces });
  return {
    ...axes,
    gates: "same",
    splits: false,
    dispatcherFor: (given) => {
      if (given !== undefined)
        throw new ArgumentError(
          "moeLayer: splitAfterGate sends slots of one size, but a dispatcher was given; leave the dispatcher out, or use splitBeforeGate",
        );
      return slotShareDispatcher(axes, pieces) as TokenDispatcher;
    },
  };
};
