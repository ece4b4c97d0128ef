import type { Assignment, RankMessage } from "../rank/messages.ts";

/** How a run came to its end. */
export type Ending = "finished" | "stopped" | "failed";

/** What the controller of a run tells the others. */
export type ControllerMessage =
  /** Begin. */
  | { readonly type: "assign"; readonly assignment: Assignment }
  /** Begin no further step, and say which was begun. */
  | { readonly type: "stop" }
  /** The last step. */
  | { readonly type: "stop-at"; readonly step: number }
  /** All is said; the process may end. */
  | { readonly type: "end"; readonly ending: Ending };

/** What they tell it. */
export type MemberMessage =
  | { readonly type: "rank"; readonly rank: number; readonly message: RankMessage }
  /** The ranks of this process are linked with all others, and have work. */
  | { readonly type: "started" }
  | { readonly type: "begun"; readonly step: number }
  /** This process was asked to end: let the run save and stop. */
  | { readonly type: "interrupt" };
