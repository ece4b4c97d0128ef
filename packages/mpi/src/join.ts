import {
  type BlockingCommunicator,
  createCommunicator,
  openGroupState,
  wasmMessageMemory,
  type WorldConnection,
} from "@skein/collectives/transport";
import { transportsOver } from "./connect.ts";
import { loadMpi, type LoadMpiOptions } from "./load-addon.ts";
import { MpiLane } from "./lane.ts";
import { BlockingRequests } from "./requests.ts";

/** Connection to a world over MPI. Includes the data that the rank's compute thread needs to call MPI itself. */
export interface MpiWorldConnection extends WorldConnection {
  readonly mpi: {
    readonly load: Pick<LoadMpiOptions, "addon" | "cacheFolder">;
    /** One communicator per lane; empty if only one thread may call MPI. */
    readonly communicators: readonly number[];
    /** Time that the compute thread polls before it sleeps. */
    readonly spinMicroseconds: number;
  };
}

/**
 * Joins a world over MPI as the rank of this process, like `joinWorld`. Call this function in the rank's compute
 * thread. Requests with `awaited` are executed in this thread, whose MPI calls alternate with the MPI calls of the
 * progress thread. The companion executes all other requests, and all requests if only one thread may call MPI (less
 * than MPI_THREAD_SERIALIZED).
 */
export const joinMpiWorld = (connection: MpiWorldConnection): BlockingCommunicator => {
  const { rank, worldSize: size, memory, timeoutMilliseconds, mpi } = connection;
  if (mpi.communicators.length === 0) return createCommunicator(connection);
  const state = openGroupState(connection);
  const requests = new BlockingRequests(loadMpi(mpi.load), mpi.spinMicroseconds);
  const lanes = mpi.communicators.map(
    (communicator) =>
      new MpiLane({ rank, size, requests }, communicator, timeoutMilliseconds, (tag) => state.nameOf(tag)),
  );
  const messages = wasmMessageMemory(memory);
  return createCommunicator(connection, transportsOver(lanes, messages));
};
