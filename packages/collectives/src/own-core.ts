import { availableParallelism } from "node:os";
import type { Preference } from "./control-block/world-connection.ts";

/**
 * Whether every thread of the ranks of a host has a dedicated core. If so, companions poll before they sleep, and so do
 * threads that wait for companions. If threads share a core, a woken thread would wait for the end of the time slice of
 * a polling thread: 2 ms or more.
 *
 * @param threadsOfRank number of threads per rank that are busy at the same time: the compute thread and the companion.
 */
export const hasOwnCore = ({ hosts }: Preference, rank: number, threadsOfRank = 2): boolean =>
  threadsOfRank * (hosts?.find((host) => host.includes(rank))?.length ?? 1) <= availableParallelism();
