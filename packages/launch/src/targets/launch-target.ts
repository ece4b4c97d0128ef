import type { LaunchPlan } from "./launch-plan.ts";

/** A file that a target generates. */
export interface LaunchFile {
  readonly name: string;
  readonly text: string;
  /**
   * Text to print in place of `text` if the file contains a secret, with instructions to create the secret by hand. A
   * file with a secret is submitted but never printed.
   */
  readonly instead?: string;
}

/** Command that submits the files of a plan. `input` is passed on standard input, so that no files stay on disk. */
export interface Submission {
  readonly command: readonly string[];
  readonly input: string;
}

/** Files and submission command of a plan, for a target that generates files. */
export interface Launch {
  readonly files: readonly LaunchFile[];
  readonly submission: Submission;
}

/** Converts a plan to files, without side effects. @throws ConfigError if the target does not support the plan. */
export type LaunchTarget = (plan: LaunchPlan, secret: string) => Launch;
