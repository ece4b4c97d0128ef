import type { Interruption } from "../processes/interruption.ts";
import type { Failures } from "./failures.ts";
import type { Assignment, RankMessage } from "../rank/messages.ts";
import type { Prepared } from "../preparation/prepare.ts";

/** Takes what ranks say. */
export interface MessageTaker {
  take(rank: number, message: RankMessage, failures: Failures): void;
}

/** One attempt at a run. */
export interface Attempt {
  /** Of a task that trains. */
  readonly prepared?: Prepared | undefined;
  readonly assignment: Assignment;
  readonly record: MessageTaker;
  readonly interruption: Interruption;
  /** Tell people. */
  readonly note: (line: string) => void;
}

/** Runs the ranks of a job: as threads of this process, or in processes. */
export interface RankRunner {
  /**
   * Run all ranks to their end. Rejects with the failure to tell, which names its rank, once all ranks are seen out.
   */
  run(attempt: Attempt): Promise<void>;
}
