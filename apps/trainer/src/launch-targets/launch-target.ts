import type { LaunchPlan } from "./launch-plan.ts";

/** A file that a target writes. */
export interface LaunchFile {
  readonly name: string;
  readonly text: string;
  /**
   * Text to print instead of `text` if the file holds a secret, with instructions to create the secret by hand. Such a
   * file is submitted but never printed.
   */
  readonly instead?: string;
}

/** Command that submits the files of a plan. `input` is the command's standard input, so nothing is left on disk. */
export interface Submission {
  readonly command: readonly string[];
  readonly input: string;
}

/** Files and submission of a plan, on a target that generates files. */
export interface Launch {
  readonly files: readonly LaunchFile[];
  readonly submission: Submission;
}

/** Converts a plan to files, without side effects. @throws ConfigError if the plan does not fit the target. */
export type LaunchTarget = (plan: LaunchPlan, secret: string) => Launch;
