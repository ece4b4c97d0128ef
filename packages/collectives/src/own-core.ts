import { availableParallelism } from "node:os";
import type { Preference } from "./control-block/world-connection.ts";

/**
 * Returns whether every thread of a host's ranks has a core of its own. If so, companions spin before they sleep, and
 * so do threads that wait for companions. If threads share a core, a woken thread waits for the time slice of a
 * spinning thread: 2 ms or more.
 *
 * @param threadsOfRank threads per rank that are busy at once: computing and communicating.
 */
export const hasOwnCore = ({ hosts }: Preference, rank: number, threadsOfRank = 2): boolean =>
  threadsOfRank * (hosts?.find((host) => host.includes(rank))?.length ?? 1) <= availableParallelism();
