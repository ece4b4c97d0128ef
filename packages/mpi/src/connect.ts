import type { LaneTransports, MessageMemory } from "@skein/collectives/transport";
import { mpiExchange } from "./exchange.ts";
import { type MpiLane, openLanes } from "./lane.ts";
import { MpiTransport } from "./mpi-transport.ts";
import { nativeCollectives } from "./native-collectives.ts";
import type { MpiWorld } from "./world.ts";

/** The opened world of MPI, and how messages go through it. */
export interface ConnectOptions {
  readonly world: MpiWorld;
  /** Requests that may be in flight at once. Default: 4. */
  readonly lanes?: number;
  /** Memory for messages that are summed where they arrive. */
  readonly memory: MessageMemory;
  /** How long a message or a native collective may take before the lane fails. */
  readonly timeoutMilliseconds: number;
  /** What a collective is called in errors, by its tag. Default: its number. */
  readonly nameOf?: (tag: number) => string;
}

export interface MpiConnection extends LaneTransports {
  /** The lanes' communicators, for another thread of this process to call MPI on. */
  readonly communicators: readonly number[];
}

/** How requests travel over the lanes of a thread: exchanged, by MPI's own collectives, or by a schedule's messages. */
export const travelOver = (lanes: readonly MpiLane[], memory: MessageMemory): LaneTransports => ({
  transports: lanes.map((lane) => new MpiTransport(lane, memory)),
  memory,
  natives: (arithmetic) => [mpiExchange({ lanes, memory, arithmetic }), nativeCollectives(lanes)],
});

/** Give each lane a communicator of its own. Collective: every rank does it once, at the same place of its start-up. */
export const connectMpi = async (options: ConnectOptions): Promise<MpiConnection> => {
  const {
    world,
    lanes: count = 4,
    memory,
    timeoutMilliseconds,
    nameOf = (tag: number) => `collective ${tag}`,
  } = options;
  const lanes = await openLanes(world, count, timeoutMilliseconds, nameOf);
  return {
    ...travelOver(lanes, memory),
    communicators: lanes.map(({ communicator }) => communicator),
  };
};
