import type { GroupClass } from "./rank-classes.ts";
import type { Flow } from "./shared-links.ts";
import type { CollectiveTask, LinkStream } from "./task.ts";

/** Start and end times of one phase of a collective. */
export interface PhaseTimes {
  readonly stream: LinkStream;
  readonly beginSeconds: number;
  endSeconds: number;
}

/** A collective of one group in one step. All members of the group start it. */
export interface CollectiveInstance extends Flow<number> {
  readonly groupClass: number;
  readonly group: GroupClass;
  readonly step: number;
  /** Index of the collective among the collectives of its axis. */
  readonly ordinal: number;
  /** Task of the collective in the program of the first member. */
  readonly task: CollectiveTask;
  /**
   * Number of outstanding events before the collective can begin: starts by members, and ends of collectives that it
   * depends on.
   */
  missing: number;
  /** Time in seconds of the latest event so far, among the events that `missing` counts. */
  readySeconds: number;
  isReady: boolean;
  /**
   * Whether the collective is admitted: earlier collectives of its group with the same priority (its lane) no longer
   * block this collective.
   */
  hasTurn: boolean;
  /** Number of members whose stream is still busy with earlier phases, by phase. */
  readonly numBusy: number[];
  /** Seconds of each phase on the slowest member. Set when the collective is ready. */
  seconds: readonly { readonly startup: number; readonly transfer: number }[];
  /** Times of the phases that have begun. The first `donePhases` of these phases have ended. */
  readonly phases: PhaseTimes[];
  donePhases: number;
  /** Time when the collective ended, in seconds. Undefined: the collective has not ended. */
  endSeconds: number | undefined;
  /** Indices of the rank classes that wait for this collective. */
  readonly waiting: number[];
  /** Collectives that depend on this collective. */
  readonly followers: CollectiveInstance[];
}

export const newInstance = (
  groupClass: number,
  group: GroupClass,
  step: number,
  ordinal: number,
  task: CollectiveTask,
): CollectiveInstance => ({
  groupClass,
  group,
  step,
  ordinal,
  task,
  missing: group.members.length,
  readySeconds: 0,
  isReady: false,
  hasTurn: false,
  numBusy: task.phases.map(() => group.members.length),
  seconds: [],
  phases: [],
  donePhases: 0,
  endSeconds: undefined,
  waiting: [],
  followers: [],
  links: [],
  remaining: 0,
  since: 0,
  slowdown: 0,
  version: 0,
});
