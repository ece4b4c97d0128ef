import type { LaunchPlan } from "./launch-plan.ts";
import type { MpirunVersion } from "./mpirun-version.ts";
import { coordinatorVariable, rankArguments, secretVariable } from "./rank-command.ts";
import { shellCommand, shellQuote } from "../console/shell-quote.ts";

/** Facts of this machine that determine mpirun's options. */
export interface MpirunHost {
  readonly version: MpirunVersion;
  readonly cores: number;
  readonly root: boolean;
}

/**
 * Seconds between the three steps by which Open MPI ends the other ranks after one is lost. Ranks need some seconds to
 * report the lost rank. Open MPI waits even if no rank is left, so a restart takes twice as long.
 */
const abortSeconds = 5;

/** Options for ssh. Open MPI splits this value at blanks, and does not support quotes. */
const sshOptions = ({ sshPort, sshKey, sshTrustsAnyHost }: MpirunOptions): string | undefined => {
  const options = [
    ...(sshPort === undefined ? [] : ["-p", String(sshPort)]),
    ...(sshKey === undefined ? [] : ["-i", sshKey]),
    ...(sshTrustsAnyHost ? ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"] : []),
  ];
  return options.length === 0 ? undefined : options.join(" ");
};

const openMpi4 = (plan: MpirunOptions, oversubscribed: boolean, ssh: string | undefined): string[] => [
  ...(plan.hostfile === undefined ? [] : ["--hostfile", plan.hostfile]),
  ...(oversubscribed ? ["--oversubscribe"] : []),
  "--mca",
  "odls_base_sigkill_timeout",
  String(plan.abortSeconds ?? abortSeconds),
  ...(ssh === undefined ? [] : ["--mca", "plm_rsh_args", ssh]),
];

// PRRTE starts the processes of Open MPI 5 and has its own parameters.
const openMpi5 = (plan: MpirunOptions, oversubscribed: boolean, ssh: string | undefined): string[] => [
  ...(plan.hostfile === undefined ? [] : ["--hostfile", plan.hostfile]),
  ...(oversubscribed ? ["--map-by", ":OVERSUBSCRIBE"] : []),
  "--prtemca",
  "odls_base_sigkill_timeout",
  String(plan.abortSeconds ?? abortSeconds),
  ...(ssh === undefined ? [] : ["--prtemca", "plm_ssh_args", ssh]),
];

/** Processes that mpirun starts, their hosts, and ssh settings. */
export interface MpirunOptions
  extends Pick<LaunchPlan, "processes" | "hostfile" | "sshPort" | "sshKey" | "sshTrustsAnyHost"> {
  /** Seconds between the steps by which Open MPI ends ranks. Default: `abortSeconds`. */
  readonly abortSeconds?: number;
}

/**
 * Options of mpirun before the variables and the command. Ranks are not bound to cores, because each rank has separate
 * threads for computing and exchange. Waiting ranks yield if there are fewer cores than ranks.
 */
export const mpirunFlags = (settings: MpirunOptions, { version, cores, root }: MpirunHost): string[] => {
  const { processes, hostfile } = settings;
  // Hydra's ssh reads port and key only from the user's ssh configuration.
  if (version === "hydra") return ["-n", String(processes), ...(hostfile === undefined ? [] : ["-f", hostfile])];
  const oversubscribed = hostfile === undefined && processes > cores;
  return [
    "-n",
    String(processes),
    ...(root ? ["--allow-run-as-root"] : []),
    "--bind-to",
    "none",
    ...(version === "open-mpi-4" ? openMpi4 : openMpi5)(settings, oversubscribed, sshOptions(settings)),
    ...(oversubscribed ? ["--mca", "mpi_yield_when_idle", "1"] : []),
  ];
};

/**
 * Command line of mpirun. Variables are passed by name, so that no value appears on the command line; Hydra passes all
 * variables by itself.
 */
export const mpirunCommand = (plan: LaunchPlan, host: MpirunHost, output: string): string[] => [
  "mpirun",
  ...mpirunFlags(plan, host),
  ...(host.version === "hydra" ? [] : [coordinatorVariable, secretVariable].flatMap((name) => ["-x", name])),
  ...plan.program,
  ...rankArguments(plan, { job: plan.job.path, output, certificates: plan.certificates }),
];

/**
 * Signal that makes mpirun let its ranks save and stop. Open MPI forwards SIGUSR2 and does not kill ranks, whereas
 * SIGTERM makes it kill them within seconds; Hydra forwards SIGTERM.
 */
export const stopSignalOf = (version: MpirunVersion): "SIGTERM" | "SIGUSR2" =>
  version === "hydra" ? "SIGTERM" : "SIGUSR2";

/** First host of a host file, which gets rank 0. Lines have the form `host slots=2` (Open MPI) or `host:2` (Hydra). */
export const firstHost = (hostfile: string): string | undefined =>
  hostfile
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .find((line) => line !== "")
    ?.split(/\s+/)[0]!
    .replace(/:\d+$/, "");

/** A script that starts one attempt, to read or keep. The supervisor handles restarts. */
export const mpirunScript = (command: readonly string[], coordinator: string): string => `#!/bin/bash
set -eu -o pipefail
export ${coordinatorVariable}=${shellQuote(coordinator)}
${secretVariable}="$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \\n')"
export ${secretVariable}
exec ${shellCommand(command)}
`;
