import { ConfigError } from "@skein/cli/node";
import {
  type LaunchContext,
  type LaunchOptions,
  type LaunchTransport,
  launchTransports,
  type TargetName,
  targetNames,
} from "./launch-options.ts";
import { crossFaults, inKubernetes } from "./launch-rules.ts";
import { OptionReader } from "./option-reader.ts";

/** Checked options of a launch, independent of the target. */
export interface LaunchPlan {
  readonly target: TargetName;
  /** Name of the run. Each target replaces characters that it does not allow. */
  readonly name: string;
  /** Job file: absolute path for ranks that can read this file system, and text for all other ranks. */
  readonly job: { readonly path: string; readonly text: string };
  readonly ranks: number;
  /** Number of processes to start. Each process runs the same number of ranks, as threads. */
  readonly processes: number;
  /** Number of machines. Absent: the target chooses machines for the ranks. */
  readonly nodes: number | undefined;
  /** Command line of skein-train on this file system, including node. */
  readonly program: readonly string[];
  /** Options `--set` and `--steps`, which are passed to the ranks. */
  readonly overrides: readonly string[];
  readonly transport: LaunchTransport;
  /** Folder with certificates. In Kubernetes: name of the Secret with the certificates. */
  readonly certificates: string | undefined;
  readonly insecure: boolean;
  readonly output: string | undefined;
  readonly maxRestarts: number;
  /** Number of cores per rank. */
  readonly cpus: number;
  /** Memory per rank, in bytes. */
  readonly memoryBytes: number | undefined;
  /** Number of GPUs per rank. */
  readonly gpus: number;
  readonly gpuResource: string | undefined;
  readonly seconds: number | undefined;
  /** Name of Kueue's LocalQueue, or of Slurm's partition. */
  readonly queue: string | undefined;
  readonly image: string | undefined;
  readonly namespace: string | undefined;
  /** Name of the PersistentVolumeClaim that all pods mount for the output. */
  readonly claim: string | undefined;
  readonly hostfile: string | undefined;
  readonly sshPort: number | undefined;
  /** Path of the key file for ssh between nodes. */
  readonly sshKey: string | undefined;
  /** Whether ssh accepts any host key. */
  readonly sshTrustsAnyHost: boolean;
  /** Port of the rendezvous that rank 0 hosts. Absent: the target chooses a port. */
  readonly port: number | undefined;
}

const clusterName = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const clusterNameRule = "lower-case letters, digits, dots and hyphens, as Kubernetes names are";

const transportOf = (target: TargetName, job: LaunchContext["job"]): LaunchTransport => {
  if (target === "local" || job.transport !== "threads") return job.transport;
  return inKubernetes.includes(target) ? "tls" : "mpi";
};

/**
 * Checks the options of `skein-train launch` against each other, and fills in defaults.
 *
 * @throws ConfigError with one line per problem.
 */
export const makeLaunchPlan = (options: LaunchOptions, { job, program }: LaunchContext): LaunchPlan => {
  const read = new OptionReader(options);
  const target = read.oneOf("target", targetNames);
  const chosen = read.oneOf("transport", launchTransports);
  const ranks = read.count("ranks", 1, 100_000) ?? job.ranks;
  const transport = chosen ?? transportOf(target ?? "local", job);
  const plan: Omit<LaunchPlan, "target"> = {
    name:
      read.word("name", /^[A-Za-z0-9][A-Za-z0-9._-]*$/, "letters, digits, dots, dashes and underscores") ?? job.name,
    job: { path: job.path, text: job.text },
    ranks,
    processes: ranks / job.ranksPerProcess,
    nodes: read.count("nodes", 1, 100_000),
    program,
    overrides: [
      ...(options.steps === undefined ? [] : ["--steps", options.steps]),
      ...options.set.flatMap((pair) => ["--set", pair]),
    ],
    transport,
    certificates: options.certificates,
    insecure: options.insecure === true,
    output: options.output,
    maxRestarts: read.count("maxRestarts", 0, 1000) ?? 3,
    cpus: read.count("cpus", 1, 4096) ?? 2, // a rank computes on one thread and communicates on another thread
    memoryBytes: read.memoryBytes(),
    gpus: read.count("gpus", 0, 64) ?? 0,
    gpuResource: read.word(
      "gpuResource",
      /^[a-zA-Z0-9][-a-zA-Z0-9._/:]*$/,
      "a resource such as nvidia.com/gpu, or on Slurm a gres such as gpu",
    ),
    seconds: read.seconds(),
    queue: read.word(
      "queue",
      /^[a-zA-Z0-9][-a-zA-Z0-9._]*$/,
      "a name of letters, digits, dots, hyphens and underscores",
    ),
    image: read.word("image", /^[^\s]+$/, "an image reference without blanks"),
    namespace: read.word("namespace", /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "lower-case letters, digits and hyphens"),
    claim: read.word("claim", clusterName, clusterNameRule),
    hostfile: options.hostfile,
    sshPort: read.count("sshPort", 1, 65535),
    sshKey: options.sshKey,
    sshTrustsAnyHost: options.sshTrustAnyHost === true,
    port: read.count("port", 1, 65535),
  };
  if (target !== undefined) {
    read.faults.push(...crossFaults(options, { target, transport, ranks, job }));
    if (inKubernetes.includes(target))
      read.word("certificates", clusterName, `the name of a Secret: ${clusterNameRule}`);
    if (inKubernetes.includes(target) && options.output !== undefined)
      read.word(
        "output",
        /^(?!\/)(?!.*(^|\/)\.\.(\/|$))[^\0\n]+$/,
        "a folder inside the claim, so a path without a leading / or ..",
      );
  }
  if (read.faults.length > 0) throw new ConfigError(read.faults);
  return { ...plan, target: target! };
};
