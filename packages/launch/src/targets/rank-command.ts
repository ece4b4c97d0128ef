import type { LaunchPlan } from "./launch-plan.ts";

/** Name of the environment variable with the address of the coordinator, read by the process of every rank. */
export const coordinatorVariable = "SKEIN_COORDINATOR";
/** Name of the environment variable with the join secret, read by the process of every rank. */
export const secretVariable = "SKEIN_SECRET";

/** Default port of the rendezvous, for ranks that do not share their machines with other runs. */
export const defaultPort = 29410;

/** Paths of the job, the output folder and the certificates, as seen by the ranks. */
export interface RankPaths {
  readonly job: string;
  readonly output: string;
  readonly certificates: string | undefined;
}

/**
 * Returns the arguments of a rank's process. The arguments are equal for all ranks, because each process detects its
 * rank. Ranks resume from the newest checkpoint if there is one, so a restart uses the same command. The secret is not
 * an argument, because any user of a machine can list command lines.
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
