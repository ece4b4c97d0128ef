import { shellCommand, shellQuote } from "@skein/cli/node";
import type { LaunchPlan } from "./launch-plan.ts";
import type { MpirunVersion } from "./mpirun-version.ts";
import { coordinatorVariable, rankArguments, secretVariable } from "./rank-command.ts";

/** Properties of this machine that determine mpirun's options. */
export interface MpirunHost {
  readonly version: MpirunVersion;
  readonly cores: number;
  readonly root: boolean;
}

/**
 * Seconds between the three signals with which Open MPI ends the other ranks after a rank is lost. Ranks need some
 * seconds to report the lost rank. Open MPI waits even if all ranks have ended, so a restart is delayed by twice this
 * time.
 */
const abortSeconds = 5;

/** Returns options for ssh. Open MPI splits their text at spaces, and does not support quotes. */
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

// Open MPI 5 starts processes with PRRTE, which has separate parameters.
const openMpi5 = (plan: MpirunOptions, oversubscribed: boolean, ssh: string | undefined): string[] => [
  ...(plan.hostfile === undefined ? [] : ["--hostfile", plan.hostfile]),
  ...(oversubscribed ? ["--map-by", ":OVERSUBSCRIBE"] : []),
  "--prtemca",
  "odls_base_sigkill_timeout",
  String(plan.abortSeconds ?? abortSeconds),
  ...(ssh === undefined ? [] : ["--prtemca", "plm_ssh_args", ssh]),
];

/** Number of processes that mpirun starts, their hosts, and ssh settings. */
export interface MpirunOptions
  extends Pick<LaunchPlan, "processes" | "hostfile" | "sshPort" | "sshKey" | "sshTrustsAnyHost"> {
  /** Seconds between the signals with which Open MPI ends ranks. Default: the constant `abortSeconds`. */
  readonly abortSeconds?: number;
}

/**
 * Returns the options of mpirun that precede the variables and the command. Ranks are not bound to cores, because each
 * rank has separate threads for computation and communication. Waiting ranks yield if there are fewer cores than ranks.
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
 * Returns the command line of mpirun. Environment variables are passed by name, so that no value appears on the command
 * line; Hydra passes all variables by default.
 */
export const mpirunCommand = (plan: LaunchPlan, host: MpirunHost, output: string): string[] => [
  "mpirun",
  ...mpirunFlags(plan, host),
  ...(host.version === "hydra" ? [] : [coordinatorVariable, secretVariable].flatMap((name) => ["-x", name])),
  ...plan.program,
  ...rankArguments(plan, { job: plan.job.path, output, certificates: plan.certificates }),
];

/**
 * Returns the signal after which mpirun lets its ranks save and stop. Open MPI forwards SIGUSR2 without killing ranks,
 * but kills ranks within seconds after SIGTERM. Hydra forwards SIGTERM.
 */
export const stopSignalOf = (version: MpirunVersion): "SIGTERM" | "SIGUSR2" =>
  version === "hydra" ? "SIGTERM" : "SIGUSR2";

/**
 * Returns the first host of a host file, on which rank 0 runs. Lines have the form `host slots=2` (Open MPI) or
 * `host:2` (Hydra).
 */
export const firstHost = (hostfile: string): string | undefined =>
  hostfile
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .find((line) => line !== "")
    ?.split(/\s+/)[0]!
    .replace(/:\d+$/, "");

/**
 * Returns a script that starts one attempt, for the user to read or save. The supervisor, not the script, handles
 * restarts.
 */
export const mpirunScript = (command: readonly string[], coordinator: string): string => `#!/bin/bash
set -eu -o pipefail
export ${coordinatorVariable}=${shellQuote(coordinator)}
${secretVariable}="$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \\n')"
export ${secretVariable}
exec ${shellCommand(command)}
`;
