/** Names of the launch targets: systems that can start ranks. */
export const targetNames = ["local", "mpirun", "slurm", "k8s-job", "jobset", "trainjob"] as const;
export type TargetName = (typeof targetNames)[number];

/** Transports between ranks that `skein-train launch` supports. */
export const launchTransports = ["threads", "tcp", "tls", "mpi"] as const;
export type LaunchTransport = (typeof launchTransports)[number];

/** Command-line options of `skein-train launch`, as parsed by commander. */
export interface LaunchOptions {
  readonly target: string;
  readonly name?: string;
  readonly ranks?: string;
  readonly nodes?: string;
  readonly image?: string;
  readonly namespace?: string;
  readonly claim?: string;
  readonly queue?: string;
  readonly gpus?: string;
  readonly gpuResource?: string;
  readonly cpus?: string;
  readonly memory?: string;
  readonly time?: string;
  readonly output?: string;
  readonly maxRestarts?: string;
  readonly transport?: string;
  readonly certificates?: string;
  readonly insecure?: boolean;
  readonly hostfile?: string;
  readonly sshPort?: string;
  readonly sshKey?: string;
  readonly sshTrustAnyHost?: boolean;
  readonly port?: string;
  readonly steps?: string;
  readonly set: readonly string[];
}

/** Properties of the job file and this machine that launch targets need in addition to the options. */
export interface LaunchContext {
  readonly job: {
    readonly path: string;
    readonly text: string;
    readonly name: string;
    readonly ranks: number;
    readonly transport: LaunchTransport;
    readonly ranksPerProcess: number;
    readonly certificates: string | undefined;
    readonly insecure: boolean;
    /** Paths in the job that are relative to the job's folder: data and model files, by key. */
    readonly relativePaths: readonly { readonly key: string; readonly value: string }[];
  };
  readonly program: readonly string[];
}

/** Returns the command-line flag of an option. */
export const flagOf = (key: string): string => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
