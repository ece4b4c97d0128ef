import type { LaunchPlan } from "./launch-plan.ts";
import type { MpirunVersion } from "./mpirun-version.ts";
import { coordinatorVariable, rankArguments, secretVariable } from "./rank-command.ts";
import { shellCommand, shellQuote } from "../console/shell-quote.ts";

/** What mpirun needs to know of this machine. */
export interface MpirunHost {
  readonly version: MpirunVersion;
  readonly cores: number;
  readonly root: boolean;
}

/**
 * Seconds that Open MPI leaves between its three ways to end the other ranks once one is gone. They need a few to say
 * whom they lost. It waits them out even when nobody is left, so that a restart takes twice as long.
 */
const abortSeconds = 5;

/** Open MPI cuts this value at blanks, and knows no quotes. */
const sshOptions = ({ sshPort, sshKey, sshTrustsAnyHost }: MpirunPlace): string | undefined => {
  const options = [
    ...(sshPort === undefined ? [] : ["-p", String(sshPort)]),
    ...(sshKey === undefined ? [] : ["-i", sshKey]),
    ...(sshTrustsAnyHost ? ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"] : []),
  ];
  return options.length === 0 ? undefined : options.join(" ");
};

const openMpi4 = (plan: MpirunPlace, oversubscribed: boolean, ssh: string | undefined): string[] => [
  ...(plan.hostfile === undefined ? [] : ["--hostfile", plan.hostfile]),
  ...(oversubscribed ? ["--oversubscribe"] : []),
  "--mca",
  "odls_base_sigkill_timeout",
  String(plan.abortSeconds ?? abortSeconds),
  ...(ssh === undefined ? [] : ["--mca", "plm_rsh_args", ssh]),
];

// PRRTE starts the processes of Open MPI 5 and has parameters of its own.
const openMpi5 = (plan: MpirunPlace, oversubscribed: boolean, ssh: string | undefined): string[] => [
  ...(plan.hostfile === undefined ? [] : ["--hostfile", plan.hostfile]),
  ...(oversubscribed ? ["--map-by", ":OVERSUBSCRIBE"] : []),
  "--prtemca",
  "odls_base_sigkill_timeout",
  String(plan.abortSeconds ?? abortSeconds),
  ...(ssh === undefined ? [] : ["--prtemca", "plm_ssh_args", ssh]),
];

/** What mpirun is asked to start, and where. */
export interface MpirunPlace
  extends Pick<LaunchPlan, "processes" | "hostfile" | "sshPort" | "sshKey" | "sshTrustsAnyHost"> {
  /** Seconds that Open MPI leaves between its ways to end ranks. Default: `abortSeconds`. */
  readonly abortSeconds?: number;
}

/**
 * Options of mpirun before the variables and the command. Ranks are not bound to cores: each computes and exchanges on
 * threads of its own. Waiting ranks yield where there are fewer cores than ranks.
 */
export const mpirunFlags = (place: MpirunPlace, { version, cores, root }: MpirunHost): string[] => {
  const { processes, hostfile } = place;
  // Hydra's ssh takes port and key from the user's ssh configuration only.
  if (version === "hydra") return ["-n", String(processes), ...(hostfile === undefined ? [] : ["-f", hostfile])];
  const oversubscribed = hostfile === undefined && processes > cores;
  return [
    "-n",
    String(processes),
    ...(root ? ["--allow-run-as-root"] : []),
    "--bind-to",
    "none",
    ...(version === "open-mpi-4" ? openMpi4 : openMpi5)(place, oversubscribed, sshOptions(place)),
    ...(oversubscribed ? ["--mca", "mpi_yield_when_idle", "1"] : []),
  ];
};

/**
 * The command line of mpirun. Variables are passed by name, so that no value stands there; Hydra passes all of them on
 * by itself.
 */
export const mpirunCommand = (plan: LaunchPlan, host: MpirunHost, output: string): string[] => [
  "mpirun",
  ...mpirunFlags(plan, host),
  ...(host.version === "hydra" ? [] : [coordinatorVariable, secretVariable].flatMap((name) => ["-x", name])),
  ...plan.program,
  ...rankArguments(plan, { job: plan.job.path, output, certificates: plan.certificates }),
];

/**
 * The signal that makes an mpirun let its ranks save and stop. Open MPI passes SIGUSR2 on and leaves ranks alone, where
 * SIGTERM makes it kill them within seconds; Hydra passes SIGTERM on.
 */
export const stopSignalOf = (version: MpirunVersion): "SIGTERM" | "SIGUSR2" =>
  version === "hydra" ? "SIGTERM" : "SIGUSR2";

/** The first host of a host file, which gets rank 0. Lines read `host slots=2` (Open MPI) or `host:2` (Hydra). */
export const firstHost = (hostfile: string): string | undefined =>
  hostfile
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .find((line) => line !== "")
    ?.split(/\s+/)[0]!
    .replace(/:\d+$/, "");

/** A script that starts one attempt, for people to read or keep. Restarts are the supervisor's. */
export const mpirunScript = (command: readonly string[], coordinator: string): string => `#!/bin/bash
set -eu -o pipefail
export ${coordinatorVariable}=${shellQuote(coordinator)}
${secretVariable}="$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \\n')"
export ${secretVariable}
exec ${shellCommand(command)}
`;
