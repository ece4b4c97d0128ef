import type { LaunchPlan } from "./launch-plan.ts";

/** Names of the environment variables that every rank's process reads. */
export const coordinatorVariable = "SKEIN_COORDINATOR";
export const secretVariable = "SKEIN_SECRET";

/** Default port of the rendezvous, if the ranks do not share their machines with other runs. */
export const defaultPort = 29410;

/** Paths of job, results and certificates for ranks. */
export interface RankPaths {
  readonly job: string;
  readonly output: string;
  readonly certificates: string | undefined;
}

/**
 * Arguments of a rank's process, the same for all ranks, because each process finds out its own rank. Ranks resume from
 * the newest checkpoint if there is one, so a restart needs only the same command. The secret is not an argument,
 * because any user of a machine can list command lines.
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
