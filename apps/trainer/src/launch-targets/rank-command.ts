import type { LaunchPlan } from "./launch-plan.ts";

/** Names of the environment variables that every rank's process reads. */
export const coordinatorVariable = "SKEIN_COORDINATOR";
export const secretVariable = "SKEIN_SECRET";

/** Port of the rendezvous where nobody asks for another, and where the ranks' machines are theirs alone. */
export const defaultPort = 29410;

/** Where the ranks find job and certificates, and put results. */
export interface RankPaths {
  readonly job: string;
  readonly output: string;
  readonly certificates: string | undefined;
}

/**
 * The arguments of a rank's process: the same for all ranks, as each finds out its own. They continue from the newest
 * checkpoint where there is one, so that starting the same command again is all that a restart takes. The secret is
 * none of them: anyone on a machine can list command lines.
 */
export const rankArguments = (plan: LaunchPlan, { job, output, certificates }: RankPaths): string[] => [
  "run",
  job,
  "--ranks",
  String(plan.ranks),
  "--transport",
  plan.transport,
  ...(certificates === undefined ? [] : ["--certificates", certificates]),
  ...(plan.insecure ? ["--insecure"] : []),
  ...plan.overrides,
  "--output",
  output,
  "--resume-if-possible",
];
