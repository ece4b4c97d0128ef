import type { Assignment, RankMessage } from "../rank/messages.ts";

/** How a run ended. */
export type Ending = "finished" | "stopped" | "failed";

/** Messages from the controller of a run to its processes. */
export type ControllerMessage =
  /** Start the assignment. */
  | { readonly type: "assign"; readonly assignment: Assignment }
  /** Start no further step, and report the step that was started last. */
  | { readonly type: "stop" }
  /** Stop after this step. */
  | { readonly type: "stop-at"; readonly step: number }
  /** The run is over; the process may end. */
  | { readonly type: "end"; readonly ending: Ending };

/** Messages from the processes of a run to its controller. */
export type MemberMessage =
  | { readonly type: "rank"; readonly rank: number; readonly message: RankMessage }
  /** The ranks of this process are connected with all others, and have started their task. */
  | { readonly type: "started" }
  | { readonly type: "begun"; readonly step: number }
  /** This process received a signal to stop: the run should save and stop. */
  | { readonly type: "interrupt" };
