// Entry point for packages that implement another transport, such as @skein/mpi: one transport per lane, and the loop
// that serves requests over the transports.
export type { Arithmetic } from "./arithmetic.ts";
export { laneCount } from "./control-block/layout.ts";
export {
  checkRankMemory,
  type GroupState,
  type LocalPreference,
  LocalRanks,
  type LocalRanksOptions,
  openGroupState,
  type RankMemory,
} from "./control-block/local-ranks.ts";
export type { Preference, WorldConnection } from "./control-block/world-connection.ts";
export { type BlockingCommunicator, createCommunicator } from "./communicator.ts";
export { serveRequests } from "./companion/serve-requests.ts";
export type { LaneTransports } from "./lanes/rank-lanes.ts";
export { heapMessageMemory, type MessageMemory, wasmMessageMemory } from "./message-memory.ts";
export { combiningKinds, inPlaceKinds } from "./requests/kind-facts.ts";
export { minBytes, type NativeCollectives } from "./transport/native-collectives.ts";
export { after, type Eventually, Future, type SendHandle, type Transport } from "./transport/transport.ts";
export type { Link, LinkCodec, LinkReceiver } from "./network/link.ts";
export { createNetworkWorld, type NetworkWorld, type NetworkWorldOptions } from "./network/network-transport.ts";
