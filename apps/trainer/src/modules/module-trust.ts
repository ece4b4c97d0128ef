import { ConfigError } from "../errors.ts";
import { moduleName, refusesModules } from "./load-module.ts";
import { modulesOf } from "./module-keys.ts";

const namesIn = (jobs: readonly object[]): string[] => [
  ...new Set(jobs.flatMap((job) => modulesOf(job).map(([key, module]) => moduleName(key, module)))),
];

/** A line for people about the code that jobs run; undefined if they name none. */
export const codeLine = (jobs: readonly object[]): string | undefined => {
  const names = namesIn(jobs);
  return names.length === 0
    ? undefined
    : `runs code that the job names: ${names.join(", ")}, and what it imports; --no-modules refuses it`;
};

/** Called before anything of a job is loaded. @throws ConfigError with all its modules if this process refuses them. */
export const requireTrusted = (job: object): void => {
  const names = refusesModules() ? namesIn([job]) : [];
  if (names.length > 0)
    throw new ConfigError([
      `the job runs code, which --no-modules refuses: ${names.join(", ")}; read it, and leave --no-modules out if you trust it`,
    ]);
};
