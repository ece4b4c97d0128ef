import { availableParallelism } from "node:os";
import type { Preference } from "./control-block/world-connection.ts";

/**
 * Whether every thread of a host's ranks has a core: then companions look for what comes next before they sleep, and
 * whoever waits for them does the same. Where threads must share a core, one that is woken waits for the time slice of
 * one that only looks: 2 ms and more.
 *
 * @param threadsOfRank that are busy at once: computing and communicating.
 */
export const hasOwnCore = ({ hosts }: Preference, rank: number, threadsOfRank = 2): boolean =>
  threadsOfRank * (hosts?.find((host) => host.includes(rank))?.length ?? 1) <= availableParallelism();
