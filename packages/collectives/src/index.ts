export { algorithms } from "./algorithms/table.ts";
export { binomialBroadcast } from "./algorithms/binomial-broadcast.ts";
export { directAllGather } from "./algorithms/direct-all-gather.ts";
export { directAllReduce } from "./algorithms/direct-all-reduce.ts";
export { directReduceScatter } from "./algorithms/direct-reduce-scatter.ts";
export { disseminationBarrier } from "./algorithms/dissemination-barrier.ts";
export { halvingDoublingAllReduce } from "./algorithms/halving-doubling-all-reduce.ts";
export { pairwiseAllToAll } from "./algorithms/pairwise-all-to-all.ts";
export { ringAllGather } from "./algorithms/ring-all-gather.ts";
export { ringAllReduce } from "./algorithms/ring-all-reduce.ts";
export { ringReduceScatter } from "./algorithms/ring-reduce-scatter.ts";
export { sendReceive } from "./algorithms/send-receive.ts";
export { type Arithmetic, reducible } from "./arithmetic.ts";
export {
  CollectiveError,
  type CollectivePlace,
  CollectiveTimeoutError,
  GroupClosedError,
  PeerLostError,
  RanksDisagreeError,
} from "./errors.ts";
export { execute, executeBlocking, type Execution, scratchBytes } from "./execute.ts";
export { plainArithmetic } from "./plain-arithmetic.ts";
export {
  type Algorithm,
  type ElementRange,
  type Place,
  type Region,
  type Schedule,
  sentElements,
  sentMessages,
  type Step,
} from "./schedule.ts";
export { selectAlgorithm, type Situation } from "./select.ts";
export { runCompanion } from "./threads/companion.ts";
export { Control, controlBytes, type ThreadConnection } from "./threads/control.ts";
export { joinThreadWorld, type ThreadCommunicator } from "./threads/thread-communicator.ts";
export { memoryWorld } from "./transport/memory-transport.ts";
export { ThreadTransport } from "./transport/thread-transport.ts";
export type { Eventually, Loan, Transport } from "./transport/transport.ts";
export { checkKernels, requiredExports, wasmArithmetic } from "./wasm-arithmetic.ts";
