import type { Job } from "../job/job.ts";
import { codeLine, requireTrusted } from "../modules/module-trust.ts";
import { writeStderr } from "../console/terminal.ts";
import type { GlobalOptions } from "./run-options.ts";

/**
 * Say which code jobs of somebody else would run, before any of it is loaded.
 *
 * @throws ConfigError if the job names code and `--no-modules` is given.
 */
export const sayCode = (jobs: readonly Job[], { quiet }: Pick<GlobalOptions, "quiet">): void => {
  for (const job of jobs) requireTrusted(job);
  const line = codeLine(jobs);
  if (line !== undefined && quiet !== true) writeStderr(`${line}\n`);
};
