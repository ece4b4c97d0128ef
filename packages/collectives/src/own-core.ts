import { availableParallelism } from "node:os";
import type { Preference } from "./control-block/world-connection.ts";

/**
 * Whether every thread of all ranks on this rank's host has a dedicated core. If so, companions and the threads that
 * wait for companions poll before they sleep. If threads shared a core, a woken thread could wait 2 ms or more until
 * the time slice of a polling thread ends.
 *
 * @param threadsOfRank number of threads per rank that are busy at the same time: the compute thread and the companion.
 */
export const hasOwnCore = ({ hosts }: Preference, rank: number, threadsOfRank = 2): boolean =>
  threadsOfRank * (hosts?.find((host) => host.includes(rank))?.length ?? 1) <= availableParallelism();
