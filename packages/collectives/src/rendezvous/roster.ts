import { z } from "zod";
import { hostsOf } from "../topology.ts";

/** Where a rank listens for the data of others. */
export interface RankAddress {
  readonly host: string;
  readonly port: number;
}

/** One rank of a world. */
export interface RosterEntry extends RankAddress {
  readonly rank: number;
  /** Name of the machine: ranks of one name can share memory, if of one process, or its loopback. */
  readonly hostName: string;
  /**
   * Number of the process that holds the rank. Processes are numbered by their lowest rank, so the numbers do not
   * depend on who came first.
   */
  readonly process: number;
}

/** Who is where: one entry per rank, in the order of ranks; the same on every process. */
export type Roster = readonly RosterEntry[];

export const addressSchema: z.ZodType<RankAddress> = z.strictObject({
  host: z.string().min(1).max(255),
  port: z.int().min(1).max(65_535),
});

export const rosterSchema: z.ZodType<Roster> = z
  .array(
    z.strictObject({
      rank: z.int().min(0),
      host: z.string().min(1).max(255),
      port: z.int().min(1).max(65_535),
      hostName: z.string().min(1).max(255),
      process: z.int().min(0),
    }),
  )
  .min(1)
  .refine((roster) => roster.every(({ rank }, index) => rank === index), "ranks must be 0, 1, 2, … in order");

/** Ranks that share a process, and so its memory. Groups are in the order of process numbers. */
export const processesOf = (roster: Roster): number[][] => hostsOf(roster.map(({ process }) => String(process)));
