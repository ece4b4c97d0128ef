import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { newestStep } from "@skein/checkpoints/node";
import {
  asTyped,
  commandAction,
  ConfigError,
  nodeFiles,
  onInterrupt,
  shellCommand,
  type StopCause,
  writeStderr,
  writeStdout,
} from "@skein/cli/node";
import { readTextFile } from "@skein/collectives/node";
import { type Override, parseJob, parseOverride, relativePaths } from "@skein/job/node";
import {
  codeAfter,
  coordinatorVariable,
  defaultPort,
  firstHost,
  jobset,
  k8sJob,
  type LaunchFile,
  type LaunchOptions,
  type LaunchPlan,
  type LaunchTarget,
  launchTransports,
  localCommand,
  makeLaunchPlan,
  mpirunCommand,
  type MpirunHost,
  mpirunHost,
  mpirunScript,
  secretVariable,
  slurm,
  startAttempt,
  stopShield,
  stopSignalOf,
  submit,
  supervise,
  targetNames,
  trainjob,
} from "@skein/launch/node";
import { type Command, Option } from "commander";
import { readJobFile } from "../job-file/load-job.ts";
import { sampleJob } from "../own-files.ts";
import { claimOutput } from "../output-folder/output-folder.ts";

interface CommandOptions extends LaunchOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly dryRun?: boolean;
  readonly submit?: boolean;
}

/** Cluster targets, which generate files. All other targets start processes on this machine. */
const clusterTargets: Readonly<Partial<Record<LaunchPlan["target"], LaunchTarget>>> = {
  slurm,
  "k8s-job": k8sJob,
  jobset,
  trainjob,
};

/**
 * Command line with which other processes start this program. The path of node is absolute, because PATH of another
 * machine may contain another version of Node.
 */
const program: readonly string[] = [
  process.execPath,
  ...process.execArgv,
  fileURLToPath(new URL("../main.ts", import.meta.url)),
];

/** Returns a join secret of 256 random bits. */
const newJoinSecret = (): string => randomBytes(32).toString("hex");

const note = (line: string): void => writeStderr(`${asTyped(line)}\n`);

/**
 * Prints files on standard output, so that they can be redirected. A file with a secret is replaced by instructions to
 * create the secret.
 */
const printFiles = (files: readonly LaunchFile[], command: readonly string[], json: boolean): void => {
  const printed = files.map(({ name, text, instead }) => ({ name, text: instead ?? text }));
  if (json) {
    writeStdout(`${JSON.stringify({ files: printed, command })}\n`);
    return;
  }
  const [only] = printed;
  // Nothing may be printed before a single script, because its first line must be `#!`.
  if (printed.length === 1) process.stdout.write(only!.text);
  else for (const { name, text } of printed) process.stdout.write(`---\n# ${name}\n${text}`);
};

/**
 * Converts the options `--ranks`, `--steps` and `--transport` to overrides of the job, so that their values are checked
 * by the job schema. Ranks receive these options as the user typed them.
 */
const optionOverrides = ({ ranks, steps, transport }: CommandOptions): Override[] =>
  Object.entries({ ranks, steps, transport }).flatMap(([key, text]) =>
    text === undefined
      ? []
      : [{ path: [key], value: /^\d+$/.test(text) ? Number(text) : text, origin: `--${key} ${text}` }],
  );

const readPlan = (file: string, options: CommandOptions): LaunchPlan => {
  const text = readJobFile(file);
  const job = parseJob(text, file, [...options.set.map(parseOverride), ...optionOverrides(options)]);
  const { name, ranks, transport, network } = job;
  const { ranksPerProcess, certificates, insecure } = network;
  const plan = makeLaunchPlan(options, {
    job: {
      path: resolve(file),
      text,
      relativePaths: relativePaths(job),
      name,
      ranks,
      transport,
      ranksPerProcess,
      certificates,
      insecure,
    },
    program,
  });
  if (plan.target !== "mpirun") return plan;
  const absolute = (path: string | undefined): string | undefined => path && resolve(path);
  return {
    ...plan,
    hostfile: absolute(plan.hostfile),
    certificates: absolute(plan.certificates),
    sshKey: absolute(plan.sshKey),
  };
};

const freePort = (): Promise<number> =>
  new Promise((done, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => done(typeof address === "object" ? address!.port : 0));
    });
  });

/** Maximum size of a host file in bytes: enough for thousands of hosts, one per line. */
const maxHostfileBytes = 2 ** 20;

const readHostfile = (path: string): string => {
  try {
    return readTextFile(path, maxHostfileBytes).text;
  } catch (error) {
    throw new ConfigError([
      `--hostfile ${path}: cannot be read (${(error as Error).message}); name a file with a host per line`,
    ]);
  }
};

/**
 * Returns the address of the rendezvous on rank 0: the first host in the host file, or this machine if no host file is
 * given.
 */
const coordinatorOf = async ({ hostfile, port }: LaunchPlan): Promise<string> => {
  if (hostfile === undefined) return `127.0.0.1:${port ?? (await freePort())}`;
  const host = firstHost(readHostfile(hostfile));
  if (host === undefined)
    throw new ConfigError([`--hostfile ${hostfile}: names no host; write one per line, such as "node-0 slots=2"`]);
  return `${host}:${port ?? defaultPort}`;
};

/**
 * Returns the default output folder that `claimOutput` would create for the next run: `runs/<name>/<number>`. Does not
 * create the folder.
 */
const nextOutput = (name: string): string => {
  for (let number = 1; ; number++) {
    const path = join("runs", name, String(number));
    if (!existsSync(path)) return path;
  }
};

/**
 * Listens for stop signals. `interrupted` resolves on the first signal. A second signal ends this process. `release`
 * stops listening.
 */
const interruption = (): { readonly interrupted: Promise<StopCause>; readonly release: () => void } => {
  let release = (): void => {};
  const interrupted = new Promise<StopCause>((done) => {
    release = onInterrupt((cause) => {
      note("asking the ranks to save and stop");
      done(cause);
    }, note);
  });
  return { interrupted, release };
};

const launchHere = async (plan: LaunchPlan): Promise<number> => {
  const { interrupted, release } = interruption();
  let cause: StopCause | undefined;
  try {
    const attempt = startAttempt(localCommand(plan), process.env, { stop: "SIGUSR2", end: "SIGTERM" });
    void interrupted.then((signal) => {
      cause = signal;
      attempt.stop();
    });
    return codeAfter(await attempt.ended, cause);
  } finally {
    release();
  }
};

const launchMpirun = async (plan: LaunchPlan, host: MpirunHost): Promise<number> => {
  // Ranks on other hosts check the caches of their hosts.
  if (plan.transport === "mpi" && plan.hostfile === undefined) {
    const { findAddon } = await import("@skein/mpi/node"); // only runs over MPI need the MPI addon
    findAddon({}, host.version === "hydra" ? "mpich" : "open-mpi");
  }
  await coordinatorOf(plan); // throws for an unusable host file, before a folder is created
  const output = resolve(plan.output ?? claimOutput(plan.name, undefined).path);
  const command = mpirunCommand(plan, host, output);
  const secret = process.env[secretVariable] ?? newJoinSecret();
  note(`${plan.name}: ${plan.ranks} ranks under mpirun, output in ${output}`);
  const { interrupted, release } = interruption();
  const shield = await stopShield(host.version);
  const stop = stopSignalOf(host.version);
  try {
    return await supervise({
      interrupted,
      note,
      maxRestarts: plan.maxRestarts,
      reached: () => newestStep(nodeFiles, output),
      start: async () => {
        const env = { ...process.env, [coordinatorVariable]: await coordinatorOf(plan), [secretVariable]: secret };
        return startAttempt([...shield, ...command], env, { stop, end: shield.length > 0 ? stop : "SIGTERM" });
      },
    });
  } finally {
    release();
  }
};

const launchCommand = async (file: string, options: CommandOptions): Promise<number> => {
  if (options.dryRun === true && options.submit === true)
    throw new ConfigError([
      "--dry-run and --submit exclude each other; give --dry-run to print only, --submit to start",
    ]);
  const plan = readPlan(file, options);
  const target = clusterTargets[plan.target];
  const printsOnly = options.submit !== true;
  const show = (files: readonly LaunchFile[], command: readonly string[]): number => {
    printFiles(files, command, options.json === true);
    if (options.dryRun !== true && options.quiet !== true) note("nothing was started; add --submit to start it");
    return 0;
  };
  if (target !== undefined) {
    const { files, submission } = target(plan, newJoinSecret());
    if (printsOnly) return show(files, submission.command);
    await submit(submission);
    return 0;
  }
  if (plan.target === "local") {
    if (!printsOnly) return launchHere(plan);
    const command = localCommand(plan);
    return show([{ name: "run.sh", text: `#!/bin/bash\nexec ${shellCommand(command)}\n` }], command);
  }
  const host = await mpirunHost();
  if (!printsOnly) return launchMpirun(plan, host);
  const command = mpirunCommand(plan, host, resolve(plan.output ?? nextOutput(plan.name)));
  return show([{ name: "mpirun.sh", text: mpirunScript(command, await coordinatorOf(plan)) }], command);
};

/** Adds `skein-train launch` to the command line. `finish` receives the exit code. */
export const addLaunchCommand = (parent: Command, finish: (code: number) => void): void => {
  const collect = (value: string, list: readonly string[]): string[] => [...list, value];
  parent
    .command("launch")
    .description(
      "start a job's ranks on this machine, with mpirun, on Slurm or on Kubernetes; without --submit, print what would be started",
    )
    .argument("<job>", "job file, YAML or JSON")
    .requiredOption("--target <target>", `launcher: ${targetNames.join(", ")}`)
    .option("--submit", "start the run")
    .option("--dry-run", "print what would be started; the default")
    .option("--name <name>", "name of the run; default: the job's")
    .option("--ranks <count>", "number of ranks; default: the job's")
    .option("--nodes <count>", "number of machines (slurm, trainjob)")
    .option(
      "--transport <transport>",
      `how ranks communicate: ${launchTransports.join(", ")}; default: the job's; for a job with threads: mpi with mpirun and slurm, tls on Kubernetes`,
    )
    .option(
      "--certificates <name>",
      "folder with certificates for tls; on Kubernetes, the Secret with the certificates",
    )
    .option("--insecure", "allow tcp and mpi to send unencrypted data between machines")
    .option("--output <folder>", "folder of the results; on Kubernetes, a folder of the claim")
    .option(
      "--max-restarts <count>",
      "maximum number of restarts from the newest checkpoint after failures; default: 3",
    )
    .option("--cpus <count>", "cores per rank; default: 2")
    .option("--memory <amount>", "memory per rank, such as 8Gi")
    .option("--gpus <count>", "GPUs per rank; default: 0")
    .option("--gpu-resource <name>", "name of the GPU resource on the cluster; default: nvidia.com/gpu, on Slurm gpu")
    .option("--time <hh:mm:ss>", "time limit")
    .option("--queue <name>", "Slurm's partition, or Kueue's queue")
    .option("--image <reference>", "container image with skein-train (Kubernetes)")
    .option("--namespace <name>", "namespace (Kubernetes)")
    .option("--claim <name>", "PersistentVolumeClaim for the output, ReadWriteMany (Kubernetes)")
    .option("--hostfile <file>", "hosts for mpirun")
    .option("--ssh-port <port>", "port of ssh on mpirun's hosts (Open MPI)")
    .option("--ssh-key <file>", "key for ssh to mpirun's hosts (Open MPI)")
    .option("--ssh-trust-any-host", "do not check the host keys of mpirun's hosts (Open MPI)")
    .option("--port <port>", "port of the rendezvous")
    .option("--steps <count>", "steps to train, instead of the job's epochs or steps")
    .addOption(
      new Option("--set <key=value>", "replace a value of the job; may be repeated")
        .argParser(collect)
        .default([], "none"),
    )
    .addHelpText(
      "after",
      `\nExamples:\n  skein-train launch ${sampleJob()} --target mpirun --ranks 4 --submit\n  skein-train launch ${sampleJob()} --target slurm --ranks 8 --nodes 2 --time 04:00:00 --insecure --submit\n  skein-train launch ${sampleJob()} --target jobset --ranks 4 --image registry.example/skein:1 --claim runs --certificates skein-certs`,
    )
    .action(commandAction(finish, launchCommand));
};
