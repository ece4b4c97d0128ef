import type { Assignment, RankMessage } from "../rank/messages.ts";

/** Outcome of a run. */
export type Ending = "finished" | "stopped" | "failed";

/** Messages from the controller of a run to its processes. */
export type ControllerMessage =
  /** Requests that the process starts the assignment. */
  | { readonly type: "assign"; readonly assignment: Assignment }
  /** Asks the process to start no further step, and to report the last step that it started. */
  | { readonly type: "stop" }
  /** Requests that the process stops after step `step`. */
  | { readonly type: "stop-at"; readonly step: number }
  /** Reports the end of the run; the process may exit. */
  | { readonly type: "end"; readonly ending: Ending };

/** Messages from the processes of a run to its controller. */
export type MemberMessage =
  | { readonly type: "rank"; readonly rank: number; readonly message: RankMessage }
  /** Reports that the ranks of this process are connected with all other ranks, and have started their task. */
  | { readonly type: "started" }
  | { readonly type: "begun"; readonly step: number }
  /** Reports that this process received a stop signal; the run should save and stop. */
  | { readonly type: "interrupt" };
