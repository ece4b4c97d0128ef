import type { Interruption } from "../processes/interruption.ts";
import type { Failures } from "./failures.ts";
import type { Assignment, RankMessage } from "../rank/messages.ts";
import type { Prepared } from "../preparation/prepared.ts";

/** Handles messages of ranks. */
export interface MessageHandler {
  take(rank: number, message: RankMessage, failures: Failures): void;
}

/** Inputs of one attempt at a run. */
export interface Attempt {
  /** The prepared job. Absent for tasks that do not train. */
  readonly prepared?: Prepared | undefined;
  readonly assignment: Assignment;
  readonly record: MessageHandler;
  readonly interruption: Interruption;
  /** Prints a human-readable line. */
  readonly note: (line: string) => void;
}

/** Runs the ranks of a job: as threads of this process, or in processes. */
export interface RankRunner {
  /**
   * Runs all ranks until they end. If a rank fails, rejects after all ranks have ended. The error names the failed
   * rank.
   */
  run(attempt: Attempt): Promise<void>;
}
