import type { GroupClass } from "./rank-classes.ts";
import type { Flow } from "./shared-links.ts";
import type { CollectiveTask, LinkStream } from "./task.ts";

/** A phase of a collective as it was. */
export interface PhaseTimes {
  readonly stream: LinkStream;
  readonly beginSeconds: number;
  endSeconds: number;
}

/** One collective of one group in one step: where its members meet. */
export interface Meeting extends Flow<number> {
  readonly groupClass: number;
  readonly group: GroupClass;
  readonly step: number;
  /** Which of its axis's collectives it is. */
  readonly ordinal: number;
  /** As the first member has it. */
  readonly task: CollectiveTask;
  /** Starts of members, and collectives that they need, which have not come yet. */
  missing: number;
  /** When the last of them came, as far as it is known. */
  readySeconds: number;
  isReady: boolean;
  /** Its group's lane has come to it. */
  hasTurn: boolean;
  /** By phase: members whose stream has not come to it yet. */
  readonly held: number[];
  /** Of each phase, once it is ready: what the slowest member's part takes. */
  seconds: readonly { readonly startup: number; readonly transfer: number }[];
  /** Phases that have begun, and those that are done. */
  readonly phases: PhaseTimes[];
  donePhases: number;
  /** When it was done; undefined before. */
  endSeconds: number | undefined;
  /** Ranks that stand still for it, and collectives that start after it. */
  readonly waiting: number[];
  readonly followers: Meeting[];
}

export const newMeeting = (
  groupClass: number,
  group: GroupClass,
  step: number,
  ordinal: number,
  task: CollectiveTask,
): Meeting => ({
  groupClass,
  group,
  step,
  ordinal,
  task,
  missing: group.members.length,
  readySeconds: 0,
  isReady: false,
  hasTurn: false,
  held: task.phases.map(() => group.members.length),
  seconds: [],
  phases: [],
  donePhases: 0,
  endSeconds: undefined,
  waiting: [],
  followers: [],
  links: [],
  left: 0,
  since: 0,
  slowdown: 0,
  version: 0,
});
