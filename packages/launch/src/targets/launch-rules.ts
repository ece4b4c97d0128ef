import { resolve } from "node:path";
import {
  flagOf,
  type LaunchContext,
  type LaunchOptions,
  type LaunchTransport,
  type TargetName,
} from "./launch-options.ts";

export const inKubernetes: readonly TargetName[] = ["k8s-job", "jobset", "trainjob"];
const acrossMachines: readonly TargetName[] = ["slurm", ...inKubernetes];

/** Targets that support an option. Absent: all targets support the option. */
const targetsOf: Partial<Record<keyof LaunchOptions, readonly TargetName[]>> = {
  nodes: ["slurm", "trainjob"],
  image: inKubernetes,
  namespace: inKubernetes,
  claim: inKubernetes,
  queue: acrossMachines,
  gpus: acrossMachines,
  gpuResource: acrossMachines,
  cpus: acrossMachines,
  memory: acrossMachines,
  time: acrossMachines,
  certificates: ["local", "mpirun", ...acrossMachines],
  hostfile: ["mpirun"],
  sshPort: ["mpirun"],
  sshKey: ["mpirun"],
  sshTrustAnyHost: ["mpirun"],
  port: ["mpirun", ...acrossMachines],
};

/**
 * Target, transport, rank count and job of a launch after defaults are filled in, for rules between several options.
 */
interface Settled {
  readonly target: TargetName;
  readonly transport: LaunchTransport;
  readonly ranks: number;
  readonly job: LaunchContext["job"];
}

const networkFaults = (options: LaunchOptions, { target, transport, job }: Settled): string[] => {
  const faults: string[] = [];
  const cluster = inKubernetes.includes(target);
  if (transport === "threads" && target !== "local")
    faults.push(`--transport threads: --target ${target} starts processes; use --transport tls, tcp or mpi`);
  if (transport === "mpi" && (target === "k8s-job" || target === "jobset"))
    faults.push(`--transport mpi: --target ${target} starts no MPI; use --target trainjob, or --transport tls`);
  const hasCertificates = options.certificates !== undefined || (job.certificates !== undefined && !cluster);
  if (transport === "tls" && !hasCertificates && target !== "local")
    faults.push(
      `--transport tls needs --certificates: ${cluster ? "the Secret with" : "the folder of"} certificates; make them with skein-train certs init`,
    );
  if (transport !== "tls" && options.certificates !== undefined)
    faults.push(
      `--certificates ${options.certificates}: transport ${transport} uses no certificates; remove the option, or use --transport tls`,
    );
  const acrossTheNetwork = acrossMachines.includes(target) || options.hostfile !== undefined;
  if ((transport === "tcp" || transport === "mpi") && acrossTheNetwork && options.insecure !== true && !job.insecure)
    faults.push(
      `--transport ${transport} sends unencrypted data between machines; use --transport tls, or give --insecure if the network is yours alone`,
    );
  return faults;
};

/**
 * Matches paths that Open MPI passes to ssh unchanged. Open MPI splits the option value at spaces, does not support
 * quotes, and in some cases passes the value to a shell.
 */
const passedWhole = /^[A-Za-z0-9_@%+=:,./-]+$/;

const nodeFaults = (options: LaunchOptions, { target, transport, ranks, job }: Settled): string[] => {
  const faults: string[] = [];
  if (options.sshKey !== undefined && !passedWhole.test(resolve(options.sshKey)))
    faults.push(
      `--ssh-key ${JSON.stringify(options.sshKey)}: its path has blanks or characters that Open MPI does not pass to ssh unchanged; move the key, or name it in ~/.ssh/config`,
    );
  const nodes = options.nodes === undefined ? undefined : Number(options.nodes);
  const processes = ranks / job.ranksPerProcess;
  if (nodes !== undefined && nodes > 0 && processes % nodes !== 0)
    faults.push(
      `--nodes ${nodes}: ${processes} processes are not divisible by ${nodes} nodes; choose a divisor of ${processes}`,
    );
  if (target === "trainjob" && transport === "mpi" && !(nodes !== undefined && nodes >= 2))
    faults.push(
      `--target trainjob with --transport mpi needs --nodes of 2 or more, not ${options.nodes ?? "none"}: a launcher and others; on one machine use --target k8s-job`,
    );
  if (target === "trainjob" && transport !== "mpi" && nodes !== undefined && nodes !== processes)
    faults.push(
      `--nodes ${nodes}: without MPI a TrainJob runs one process per node, here ${processes}; remove --nodes`,
    );
  if (target === "slurm" && Number(options.gpus) > 0 && nodes === undefined)
    faults.push(`--gpus ${options.gpus}: Slurm allocates GPUs per node; give --nodes as well`);
  return faults;
};

/** Maximum size of the job in a ConfigMap, in bytes. Kubernetes allows 1 MiB including object keys. */
const maxConfigMapBytes = 1_000_000;

/** Checks the rules that relate options, target and job. Returns one message per violated rule. */
export const crossFaults = (options: LaunchOptions, settled: Settled): string[] => {
  const { target, ranks, job } = settled;
  const faults: string[] = [];
  for (const [key, targets] of Object.entries(targetsOf)) {
    if (options[key as keyof LaunchOptions] !== undefined && !targets.includes(target))
      faults.push(`${flagOf(key)} has no effect for --target ${target}, only for ${targets.join(", ")}; remove it`);
  }
  const cluster = inKubernetes.includes(target);
  if (cluster && options.image === undefined)
    faults.push(`--target ${target} needs --image: a container image with skein-train on its PATH; name one`);
  if (cluster && options.claim === undefined)
    faults.push(
      `--target ${target} needs --claim: a PersistentVolumeClaim (ReadWriteMany) that keeps checkpoints across restarts; name one`,
    );
  const jobBytes = Buffer.byteLength(job.text);
  if (cluster && jobBytes > maxConfigMapBytes)
    faults.push(
      `${job.path}: has ${jobBytes} bytes, but pods of --target ${target} get it in a ConfigMap, which holds at most ${maxConfigMapBytes}; name fewer files, or one folder that holds the files`,
    );
  if (cluster)
    for (const { key, value } of job.relativePaths)
      faults.push(
        `${key} is ${value}, relative to the job file, but pods of --target ${target} get only the job file; put the file into the image and name it by its absolute path there`,
      );
  if (ranks % job.ranksPerProcess !== 0)
    faults.push(
      `--ranks ${ranks}: the job runs ${job.ranksPerProcess} ranks per process; choose a multiple of ${job.ranksPerProcess}`,
    );
  return [...faults, ...networkFaults(options, settled), ...nodeFaults(options, settled)];
};
