import { type CollectiveKind, InvariantError } from "@skein/tensor-core";
import { binomialBroadcast } from "./algorithms/binomial-broadcast.ts";
import { directAllGather } from "./algorithms/direct-all-gather.ts";
import { directAllReduce } from "./algorithms/direct-all-reduce.ts";
import { directReduceScatter } from "./algorithms/direct-reduce-scatter.ts";
import { disseminationBarrier } from "./algorithms/dissemination-barrier.ts";
import { halvingDoublingAllReduce } from "./algorithms/halving-doubling-all-reduce.ts";
import { pairwiseAllToAll } from "./algorithms/pairwise-all-to-all.ts";
import { ringAllGather } from "./algorithms/ring-all-gather.ts";
import { ringAllReduce } from "./algorithms/ring-all-reduce.ts";
import { ringReduceScatter } from "./algorithms/ring-reduce-scatter.ts";
import { sendReceive } from "./algorithms/send-receive.ts";
import type { Algorithm } from "./schedule.ts";

/** What a choice depends on; equal on all ranks, so all choose alike. */
export interface Situation {
  readonly kind: CollectiveKind;
  readonly worldSize: number;
  /** S of docs/algorithms.md. */
  readonly byteLength: number;
  readonly sharesMemory: boolean;
  /** Time of an empty message over time per byte, α/β, in bytes: how many bytes one more message costs. */
  readonly messageCostBytes?: number;
}

// α/β of a 10 Gbit/s Ethernet link, taken as 30 µs per message and 1.25 GB/s; give `messageCostBytes` where a link was measured.
const ethernetMessageCostBytes = 37_500;

/**
 * Choose an algorithm. In shared memory every peer can be read where it lies, so the direct forms win at every size: they
 * touch each byte once per rank. Over messages, whichever is cheaper in the α–β model of docs/algorithms.md.
 */
export const selectAlgorithm = ({
  kind,
  worldSize,
  byteLength,
  sharesMemory,
  messageCostBytes = ethernetMessageCostBytes,
}: Situation): Algorithm => {
  switch (kind) {
    case "all-reduce": {
      if (sharesMemory) return directAllReduce;
      const core = 2 ** Math.floor(Math.log2(worldSize));
      const halvingDoubling =
        2 * Math.ceil(Math.log2(worldSize)) * messageCostBytes + ((2 * (core - 1)) / core + (core < worldSize ? 2 : 0)) * byteLength;
      const ring = 2 * (worldSize - 1) * messageCostBytes + ((2 * (worldSize - 1)) / worldSize) * byteLength;
      return halvingDoubling <= ring ? halvingDoublingAllReduce : ringAllReduce;
    }
    case "reduce-scatter":
      return sharesMemory ? directReduceScatter : ringReduceScatter;
    case "all-gather":
      return sharesMemory ? directAllGather : ringAllGather;
    case "all-to-all":
      return pairwiseAllToAll;
    case "broadcast":
      return binomialBroadcast;
    case "send-receive":
      return sendReceive;
    case "barrier":
      return disseminationBarrier;
    default:
      throw new InvariantError(`no algorithm for the collective "${String(kind)}"`);
  }
};
