import { ConfigError } from "@skein/cli/node";
import { modulesOf } from "@skein/job/node";
import { moduleName, refusesModules } from "./load-module.ts";

const namesIn = (jobs: readonly object[]): string[] => [
  ...new Set(jobs.flatMap((job) => modulesOf(job).map(([key, module]) => moduleName(key, module)))),
];

/**
 * Returns a line for the user that names the modules whose code the jobs run. Undefined if the jobs name no modules.
 */
export const codeLine = (jobs: readonly object[]): string | undefined => {
  const names = namesIn(jobs);
  return names.length === 0
    ? undefined
    : `runs code that the job names: ${names.join(", ")}, and its imports; --no-modules refuses such code`;
};

/**
 * Requires that this process may load the modules of a job. Called before any file of a job is loaded.
 * @throws ConfigError with all modules of the job if this process refuses modules.
 */
export const requireTrusted = (job: object): void => {
  const names = refusesModules() ? namesIn([job]) : [];
  if (names.length > 0)
    throw new ConfigError([
      `the job runs code, which --no-modules refuses: ${names.join(", ")}; read the code, and remove --no-modules if you trust it`,
    ]);
};
