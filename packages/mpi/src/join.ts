import {
  type BlockingCommunicator,
  joinWorld,
  openGroupState,
  wasmMessageMemory,
  type WorldConnection,
} from "@skein/collectives/transport";
import { travelOver } from "./connect.ts";
import { loadMpi, type LoadOptions } from "./load-addon.ts";
import { MpiLane } from "./lane.ts";
import { BlockingRequests } from "./requests.ts";

/** A connection to a world over MPI, with what its rank's thread needs to call MPI itself. */
export interface MpiWorldConnection extends WorldConnection {
  readonly mpi: {
    readonly load: Pick<LoadOptions, "addon" | "cacheFolder">;
    /** One per lane; none where MPI lets one thread alone call it. */
    readonly communicators: readonly number[];
    /** How long the thread looks for what it waits for before it sleeps. */
    readonly spinMicroseconds: number;
  };
}

/**
 * Join a world over MPI as the rank of this process, in its compute thread. As `joinWorld`; a request that is waited
 * for at once is carried out in this thread, whose calls take turns with those of the progress thread. Any other is the
 * companion's, as are all where MPI lets one thread alone call it (less than MPI_THREAD_SERIALIZED).
 */
export const joinMpiWorld = (connection: MpiWorldConnection): BlockingCommunicator => {
  const { rank, worldSize: size, memory, timeoutMilliseconds, mpi } = connection;
  if (mpi.communicators.length === 0) return joinWorld(connection);
  const state = openGroupState(connection);
  const requests = new BlockingRequests(loadMpi(mpi.load), mpi.spinMicroseconds);
  const lanes = mpi.communicators.map(
    (communicator) =>
      new MpiLane({ rank, size, requests }, communicator, timeoutMilliseconds, (tag) => state.nameOf(tag)),
  );
  const messages = wasmMessageMemory(memory);
  return joinWorld(connection, travelOver(lanes, messages));
};
