import { type GlobalOptions, writeStderr } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { codeLine, requireTrusted } from "../modules/module-trust.ts";

/**
 * Prints which user code the jobs would run, before any of that code is loaded.
 *
 * @throws ConfigError if a job names code and `--no-modules` is given.
 */
export const announceCode = (jobs: readonly Job[], { quiet }: Pick<GlobalOptions, "quiet">): void => {
  for (const job of jobs) requireTrusted(job);
  const line = codeLine(jobs);
  if (line !== undefined && quiet !== true) writeStderr(`${line}\n`);
};
