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
export { execute, type Execution, scratchBytes } from "./execute.ts";
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
export { type MessageMemory, wasmMessageMemory } from "./message-memory.ts";
export { plainArithmetic } from "./plain-arithmetic.ts";
export { raggedExchange } from "./ragged-schedule.ts";
export type {
  Algorithm,
  CostParameters,
  Load,
  ScheduleCost,
  Traffic,
  ElementRange,
  ScheduleParameters,
  Region,
  CollectiveSchedule,
  Step,
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
export type { Eventually, SendHandle, Transport } from "./transport/transport.ts";
export { wasmArithmetic } from "./wasm-arithmetic.ts";
export type { CodedDType } from "./wire/coded-payload.ts";
export { type Checksum, crc32c, maskedCrc32c } from "./wire/crc32c.ts";
export { CodedPayloadError, WireError } from "./wire/errors.ts";
export { crc32cOf } from "./wire/folded-crc32c.ts";
export type { FrameHeader, FrameType } from "./wire/frame.ts";
export { type LosslessCodec, losslessCodec } from "./wire/lossless-codec.ts";
export { openWireKernels, type WireMemory, type WireKernels } from "./wire/wire-kernels.ts";
export { LinkFailedError, LinkRefusedError } from "./network/errors.ts";
