export { algorithms } from "./algorithms/table.ts";
export { binomialBroadcast } from "./algorithms/binomial-broadcast.ts";
export { binomialReduce } from "./algorithms/binomial-reduce.ts";
export { bruckAllGather } from "./algorithms/bruck-all-gather.ts";
export { bruckAllToAll } from "./algorithms/bruck-all-to-all.ts";
export { chainAllReduce } from "./algorithms/chain-all-reduce.ts";
export { chainBroadcast } from "./algorithms/chain-broadcast.ts";
export { chainReduce } from "./algorithms/chain-reduce.ts";
export { doubleBinaryTreeAllReduce } from "./algorithms/double-binary-tree-all-reduce.ts";
export { gatherAllReduce } from "./algorithms/gather-all-reduce.ts";
export { gatherReduce } from "./algorithms/gather-reduce.ts";
export { mastersAllReduce } from "./algorithms/masters-all-reduce.ts";
export { parameterServerAllReduce } from "./algorithms/parameter-server-all-reduce.ts";
export { recursiveDoublingAllGather } from "./algorithms/recursive-doubling-all-gather.ts";
export { recursiveDoublingAllReduce } from "./algorithms/recursive-doubling-all-reduce.ts";
export { recursiveHalvingReduceScatter } from "./algorithms/recursive-halving-reduce-scatter.ts";
export { reduceScatterGatherReduce } from "./algorithms/reduce-scatter-gather-reduce.ts";
export { scatterAllGatherBroadcast } from "./algorithms/scatter-all-gather-broadcast.ts";
export { torusAllReduce } from "./algorithms/torus-all-reduce.ts";
export { twoLevelAllReduce } from "./algorithms/two-level-all-reduce.ts";
export { twoLevelAllToAll } from "./algorithms/two-level-all-to-all.ts";
export { directAllGather } from "./algorithms/direct-all-gather.ts";
export { directAllReduce } from "./algorithms/direct-all-reduce.ts";
export { directReduceScatter } from "./algorithms/direct-reduce-scatter.ts";
export { directReduce } from "./algorithms/direct-reduce.ts";
export { disseminationBarrier } from "./algorithms/dissemination-barrier.ts";
export { halvingDoublingAllReduce } from "./algorithms/halving-doubling-all-reduce.ts";
export { halvingReduce } from "./algorithms/halving-reduce.ts";
export { pairwiseAllToAll } from "./algorithms/pairwise-all-to-all.ts";
export { ringAllGather } from "./algorithms/ring-all-gather.ts";
export { ringAllReduce } from "./algorithms/ring-all-reduce.ts";
export { ringReduceScatter } from "./algorithms/ring-reduce-scatter.ts";
export { directSendReceive } from "./algorithms/send-receive.ts";
export { type Arithmetic, reducible } from "./arithmetic.ts";
export {
  CollectiveError,
  type FailureContext,
  CollectiveTimeoutError,
  GroupClosedError,
  type LossKind,
  PeerLostError,
  PeerRevokedError,
  RanksDifferError,
  RanksDisagreeError,
} from "./errors.ts";
export {
  runWalk,
  runWalkBlocking,
  execute,
  executeBlocking,
  type Execution,
  scratchBytes,
  type Walk,
} from "./execute.ts";
export {
  type AllToAllFit,
  type AllToAllLevel,
  fitLink,
  formatLinkFile,
  linkCosts,
  type LinkCosts,
  type LinkFile,
  type LinkFit,
  type LinkSample,
  type LinkTimes,
  type PairFit,
} from "./link-file.ts";
export { agreeOnFacts, type Facts } from "./facts.ts";
export { formatRanks } from "./ranks.ts";
export { heapMessageMemory, type MessageMemory, wasmMessageMemory } from "./message-memory.ts";
export { plainArithmetic } from "./plain-arithmetic.ts";
export { walkRagged } from "./ragged.ts";
export {
  raggedAllGatherSchedule,
  raggedExchange,
  type RaggedParameters,
  raggedAllToAllSchedule,
  rowCountSchedule,
} from "./ragged-schedule.ts";
export {
  type Algorithm,
  type CostParameters,
  type Load,
  type ScheduleCost,
  type Traffic,
  type ElementRange,
  type ScheduleParameters,
  type Region,
  type CollectiveSchedule,
  sentElements,
  sentMessages,
  type Step,
} from "./schedule.ts";
export {
  algorithmSelector,
  type AlgorithmChoice,
  ethernetLinks,
  type GroupSelectionOptions,
  predictedSeconds,
  selectAlgorithm,
  type SelectionOptions,
} from "./select.ts";
export { type BlockingCommunicator, createCommunicator } from "./communicator.ts";
export type { Preference, WorldConnection } from "./control-block/world-connection.ts";
export { createMemoryWorld } from "./transport/memory-transport.ts";
export { hostsOf, meshPartition } from "./topology.ts";
export { type Eventually, Future, type SendHandle, type Transport } from "./transport/transport.ts";
export { checkKernels, requiredExports, wasmArithmetic } from "./wasm-arithmetic.ts";
export { type CodecRates, codecPays } from "./wire/codec-pays.ts";
export { type CodedDType, codedBytes } from "./wire/coded-payload.ts";
export { type Checksum, crc32c, maskedCrc32c } from "./wire/crc32c.ts";
export { CodedPayloadError, WireError } from "./wire/errors.ts";
export { crc32cOf } from "./wire/folded-crc32c.ts";
export { decodeHeader, encodeHeader, frameFlags, type FrameHeader, type FrameType, headerBytes } from "./wire/frame.ts";
export { protocolVersion } from "./wire/version.ts";
export { FrameReader, type FrameReaderOptions, type FrameSink } from "./wire/frame-reader.ts";
export { type LosslessCodec, losslessCodec } from "./wire/lossless-codec.ts";
export { openWireKernels, type WireMemory, type WireKernels } from "./wire/wire-kernels.ts";
export { type EmulatedDirection, emulatedLinks } from "./network/emulated-links.ts";
export { LinkFailedError, LinkRefusedError } from "./network/errors.ts";
export type { Link, LinkCodec, LinkReceiver } from "./network/link.ts";
export { createNetworkWorld, type NetworkWorld, type NetworkWorldOptions } from "./network/network-transport.ts";
