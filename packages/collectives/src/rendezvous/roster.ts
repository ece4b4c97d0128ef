import { z } from "zod";
import { hostsOf } from "../topology.ts";

/** Address on which a rank listens for data of other ranks. */
export interface RankAddress {
  readonly host: string;
  readonly port: number;
}

/** One rank of a world. */
export interface RosterEntry extends RankAddress {
  readonly rank: number;
  /**
   * Name of the machine. Ranks with the same name can communicate over its loopback interface, or through shared memory
   * if they are in the same process.
   */
  readonly hostName: string;
  /**
   * Number of the process that contains the rank. Processes are numbered in the order of their lowest rank, so the
   * numbers do not depend on the order of joining.
   */
  readonly process: number;
}

/** Addresses of all ranks, one entry per rank in rank order; equal on every process. */
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

/** Groups ranks by process. Ranks of one process share its memory. Groups are in the order of process numbers. */
export const processesOf = (roster: Roster): number[][] => hostsOf(roster.map(({ process }) => String(process)));
