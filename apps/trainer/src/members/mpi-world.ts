import type { OpenMemberWorld } from "./member-world.ts";
import { preferenceOf } from "./network-world.ts";

/**
 * Prepares the communication of a process whose rank exchanges data with other ranks over MPI. The launcher assigned
 * the rank.
 */
export const openMpiWorld: OpenMemberWorld = async ({ job, ranks, memory, kernels, build }) => {
  const { createMpiWorld } = await import("@skein/mpi/node"); // only runs over MPI need the addon
  return createMpiWorld({
    rank: ranks[0]!,
    worldSize: job.ranks,
    memory,
    kernels,
    timeoutMilliseconds: job.network.timeoutSeconds * 1000,
    preference: preferenceOf(job),
    facts: { "build of the kernels": build },
  });
};
