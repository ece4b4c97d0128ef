import { type BlockingCommunicator, joinWorld, type WorldConnection } from "@skein/collectives/node";
import type { MpiWorldConnection } from "@skein/mpi/node";

const isOfMpi = (connection: WorldConnection): connection is MpiWorldConnection => "mpi" in connection;

/** Connects the rank of this thread to all ranks of the run, over the transport of `connection`. */
export const joinRank = async (connection: WorldConnection): Promise<BlockingCommunicator> => {
  if (!isOfMpi(connection)) return joinWorld(connection);
  const { joinMpiWorld } = await import("@skein/mpi/node"); // only runs over MPI need the addon
  return joinMpiWorld(connection);
};
