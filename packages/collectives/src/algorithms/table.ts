import type { Algorithm } from "../schedule.ts";
import { binomialBroadcast } from "./binomial-broadcast.ts";
import { directAllGather } from "./direct-all-gather.ts";
import { directAllReduce } from "./direct-all-reduce.ts";
import { directReduceScatter } from "./direct-reduce-scatter.ts";
import { disseminationBarrier } from "./dissemination-barrier.ts";
import { halvingDoublingAllReduce } from "./halving-doubling-all-reduce.ts";
import { pairwiseAllToAll } from "./pairwise-all-to-all.ts";
import { ringAllGather } from "./ring-all-gather.ts";
import { ringAllReduce } from "./ring-all-reduce.ts";
import { ringReduceScatter } from "./ring-reduce-scatter.ts";
import { sendReceive } from "./send-receive.ts";

/** Every algorithm. A new one is one file, one row here and one in docs/algorithms.md; the laws then run on it. */
export const algorithms: readonly Algorithm[] = [
  binomialBroadcast,
  directAllGather,
  directAllReduce,
  directReduceScatter,
  disseminationBarrier,
  halvingDoublingAllReduce,
  pairwiseAllToAll,
  ringAllGather,
  ringAllReduce,
  ringReduceScatter,
  sendReceive,
];
