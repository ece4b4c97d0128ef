import type { GroupClass } from "./rank-classes.ts";
import type { Flow } from "./shared-links.ts";
import type { CollectiveTask, LinkStream } from "./task.ts";

/** Times of a phase of a collective. */
export interface PhaseTimes {
  readonly stream: LinkStream;
  readonly beginSeconds: number;
  endSeconds: number;
}

/** One collective of one group in one step, which all members of the group start. */
export interface CollectiveInstance extends Flow<number> {
  readonly groupClass: number;
  readonly group: GroupClass;
  readonly step: number;
  /** Index among the collectives of its axis. */
  readonly ordinal: number;
  /** The task in the program of the first member. */
  readonly task: CollectiveTask;
  /** Number of starts of members, and of needed collectives, that are still outstanding. */
  missing: number;
  /** Time of the latest of these so far, in seconds. */
  readySeconds: number;
  isReady: boolean;
  /** Whether it is the turn of this collective in its group's lane. */
  hasTurn: boolean;
  /** Number of members whose stream is still busy, by phase. */
  readonly numBusy: number[];
  /** Seconds of each phase on the slowest member; set when the collective is ready. */
  seconds: readonly { readonly startup: number; readonly transfer: number }[];
  /** Phases that have begun; `donePhases` of them have ended. */
  readonly phases: PhaseTimes[];
  donePhases: number;
  /** End in seconds. Undefined until the collective has ended. */
  endSeconds: number | undefined;
  /** Classes of ranks that wait for this collective. */
  readonly waiting: number[];
  /** Collectives that start after this one. */
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
