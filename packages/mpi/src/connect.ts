import type { LaneTransports, MessageMemory } from "@skein/collectives/transport";
import { mpiExchange } from "./exchange.ts";
import { type MpiLane, openLanes } from "./lane.ts";
import { MpiTransport } from "./mpi-transport.ts";
import { nativeCollectives } from "./native-collectives.ts";
import type { MpiWorld } from "./world.ts";

/** Options for connecting ranks over MPI: an opened MPI world, and the settings of its lanes. */
export interface ConnectMpiOptions {
  readonly world: MpiWorld;
  /** Number of requests that may be in flight at the same time. Default: 4. */
  readonly lanes?: number;
  /** Memory for messages that are operands of sums. */
  readonly memory: MessageMemory;
  /** Maximum time of a message or a native collective before the lane fails. */
  readonly timeoutMilliseconds: number;
  /** Returns the name of the collective with a tag, for error messages. Default: the tag's number. */
  readonly nameOf?: (tag: number) => string;
}

export interface MpiConnection extends LaneTransports {
  /** Communicators of the lanes, on which another thread of this process may also call MPI. */
  readonly communicators: readonly number[];
}

/**
 * Returns one transport per lane for the messages of schedules, and the collectives that need no schedule: exchanges
 * and MPI's own collectives.
 */
export const transportsOver = (lanes: readonly MpiLane[], memory: MessageMemory): LaneTransports => ({
  transports: lanes.map((lane) => new MpiTransport(lane, memory)),
  memory,
  natives: (arithmetic) => [mpiExchange({ lanes, memory, arithmetic }), nativeCollectives(lanes)],
});

/**
 * Creates one communicator per lane. Collective: every rank must call this function one time, at the same point of its
 * start-up.
 */
export const connectMpi = async (options: ConnectMpiOptions): Promise<MpiConnection> => {
  const {
    world,
    lanes: count = 4,
    memory,
    timeoutMilliseconds,
    nameOf = (tag: number) => `collective ${tag}`,
  } = options;
  const lanes = await openLanes(world, count, timeoutMilliseconds, nameOf);
  return {
    ...transportsOver(lanes, memory),
    communicators: lanes.map(({ communicator }) => communicator),
  };
};
