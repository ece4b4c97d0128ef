import type { LaunchPlan } from "./launch-plan.ts";

/** Returns the command line of a run on this machine: `skein-train run` with the options of the plan. */
export const localCommand = (plan: LaunchPlan): string[] => [
  ...plan.program,
  "run",
  plan.job.path,
  "--ranks",
  String(plan.ranks),
  "--transport",
  plan.transport,
  ...(plan.certificates === undefined ? [] : ["--certificates", plan.certificates]),
  ...(plan.insecure ? ["--insecure"] : []),
  ...plan.overrides,
  "--max-restarts",
  String(plan.maxRestarts),
  ...(plan.output === undefined ? [] : ["--output", plan.output, "--resume-if-possible"]),
];
