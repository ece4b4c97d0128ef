import type { Algorithm } from "../schedule.ts";
import { binomialBroadcast } from "./binomial-broadcast.ts";
import { binomialReduce } from "./binomial-reduce.ts";
import { bruckAllGather } from "./bruck-all-gather.ts";
import { bruckAllToAll } from "./bruck-all-to-all.ts";
import { chainAllReduce } from "./chain-all-reduce.ts";
import { chainBroadcast } from "./chain-broadcast.ts";
import { chainReduce } from "./chain-reduce.ts";
import { directAllGather } from "./direct-all-gather.ts";
import { directAllReduce } from "./direct-all-reduce.ts";
import { directReduceScatter } from "./direct-reduce-scatter.ts";
import { directReduce } from "./direct-reduce.ts";
import { disseminationBarrier } from "./dissemination-barrier.ts";
import { doubleBinaryTreeAllReduce } from "./double-binary-tree-all-reduce.ts";
import { gatherAllReduce } from "./gather-all-reduce.ts";
import { gatherReduce } from "./gather-reduce.ts";
import { halvingDoublingAllReduce } from "./halving-doubling-all-reduce.ts";
import { halvingReduce } from "./halving-reduce.ts";
import { mastersAllReduce } from "./masters-all-reduce.ts";
import { pairwiseAllToAll } from "./pairwise-all-to-all.ts";
import { parameterServerAllReduce } from "./parameter-server-all-reduce.ts";
import { recursiveDoublingAllGather } from "./recursive-doubling-all-gather.ts";
import { recursiveDoublingAllReduce } from "./recursive-doubling-all-reduce.ts";
import { recursiveHalvingReduceScatter } from "./recursive-halving-reduce-scatter.ts";
import { reduceScatterGatherReduce } from "./reduce-scatter-gather-reduce.ts";
import { ringAllGather } from "./ring-all-gather.ts";
import { ringAllReduce } from "./ring-all-reduce.ts";
import { ringReduceScatter } from "./ring-reduce-scatter.ts";
import { scatterAllGatherBroadcast } from "./scatter-all-gather-broadcast.ts";
import { directSendReceive } from "./send-receive.ts";
import { torusAllReduce } from "./torus-all-reduce.ts";
import { twoLevelAllReduce } from "./two-level-all-reduce.ts";
import { twoLevelAllToAll } from "./two-level-all-to-all.ts";

/**
 * All algorithms. To add an algorithm, write a file, a row in this table and a row in docs/algorithms.md;
 * `test/laws.test.ts` then covers the algorithm. If several algorithms have equal cost, the first algorithm in this
 * table is chosen.
 * @example
 * ```ts
 * const barriers = algorithms.filter(({ kind }) => kind === "barrier");
 * console.log(barriers.map(({ name }) => name)); // ['dissemination-barrier']
 * ```
 */
export const algorithms: readonly Algorithm[] = [
  directAllReduce,
  ringAllReduce,
  recursiveDoublingAllReduce,
  halvingDoublingAllReduce,
  doubleBinaryTreeAllReduce,
  torusAllReduce,
  twoLevelAllReduce,
  mastersAllReduce,
  chainAllReduce,
  gatherAllReduce,
  parameterServerAllReduce,
  directReduceScatter,
  ringReduceScatter,
  recursiveHalvingReduceScatter,
  directAllGather,
  ringAllGather,
  recursiveDoublingAllGather,
  bruckAllGather,
  pairwiseAllToAll,
  bruckAllToAll,
  twoLevelAllToAll,
  binomialBroadcast,
  chainBroadcast,
  scatterAllGatherBroadcast,
  directReduce,
  binomialReduce,
  gatherReduce,
  reduceScatterGatherReduce,
  halvingReduce,
  chainReduce,
  disseminationBarrier,
  directSendReceive,
];
