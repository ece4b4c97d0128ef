import type { GroupSelectionOptions } from "@skein/collectives";
import { type Job, meshGroups } from "@skein/job/node";
import { preferenceOf } from "./network-world.ts";

/** Groups of ranks that communicate along a mesh axis. */
export interface AxisGroups {
  /** Properties of the groups, from which the algorithms of their collectives are chosen. */
  readonly situation: GroupSelectionOptions;
  /** Ranks of each group. Each rank of the job is in exactly one group. */
  readonly groups: readonly (readonly number[])[];
}

/**
 * Returns the groups of a job's ranks by mesh axis.
 * @throws ConfigError or LinkFileError if the link file cannot be read.
 */
export const axisGroupsOf = (job: Job): { readonly [axis: string]: AxisGroups } => {
  const preference = preferenceOf(job);
  return Object.fromEntries(
    Object.entries(meshGroups(job)).map(([axis, groups]): [string, AxisGroups] => [
      axis,
      {
        situation: { ...preference, worldSize: groups[0]!.length, sharesMemory: job.transport === "threads" },
        groups,
      },
    ]),
  );
};
