import type { LaunchPlan } from "./launch-plan.ts";

/** A file that a target writes. */
export interface LaunchFile {
  readonly name: string;
  readonly text: string;
  /** Holds a secret: submitted, never printed. A dry run prints `instead`, which says how to make it by hand. */
  readonly instead?: string;
}

/** How the files of a plan are handed over. `input` goes to the command's standard input: nothing is left on disk. */
export interface Submission {
  readonly command: readonly string[];
  readonly input: string;
}

/** What a plan becomes on a target that takes files. */
export interface Launch {
  readonly files: readonly LaunchFile[];
  readonly submission: Submission;
}

/** A pure function from a plan to files. @throws ConfigError where the plan does not fit the target. */
export type LaunchTarget = (plan: LaunchPlan, secret: string) => Launch;
