import { ConfigError } from "@skein/cli/node";

/**
 * Row of the launcher table: names of the environment variables in which a launcher gives a process its rank. Rows are
 * tried in order; the first row whose rank variable is set is used.
 */
export interface RankSource {
  readonly name: string;
  readonly rank: string;
  /**
   * Variables that may contain the number of ranks; the first variable that is set is used. If the launcher sets only
   * the rank, the user sets a general variable, such as WORLD_SIZE.
   */
  readonly worldSize: readonly string[];
  readonly localRank?: string;
  /** Variable that must also be set for this row to be used. */
  readonly requires?: string;
}

/**
 * Table of launchers, a public interface for scripts. A test compares this table with the table in docs/launching.md.
 */
export const rankSources: readonly RankSource[] = [
  {
    name: "Open MPI",
    rank: "OMPI_COMM_WORLD_RANK",
    worldSize: ["OMPI_COMM_WORLD_SIZE"],
    localRank: "OMPI_COMM_WORLD_LOCAL_RANK",
  },
  { name: "PMIx", rank: "PMIX_RANK", worldSize: ["SLURM_NTASKS", "WORLD_SIZE"], localRank: "SLURM_LOCALID" },
  { name: "MPICH (PMI)", rank: "PMI_RANK", worldSize: ["PMI_SIZE"], localRank: "MPI_LOCALRANKID" },
  // A batch script outside srun also has SLURM_PROCID=0, but is not a task. Only job steps have SLURM_STEP_ID.
  {
    name: "Slurm",
    rank: "SLURM_PROCID",
    worldSize: ["SLURM_NTASKS"],
    localRank: "SLURM_LOCALID",
    requires: "SLURM_STEP_ID",
  },
  { name: "Kubernetes Indexed Job", rank: "JOB_COMPLETION_INDEX", worldSize: ["WORLD_SIZE"] },
  { name: "the environment", rank: "RANK", worldSize: ["WORLD_SIZE"], localRank: "LOCAL_RANK" },
];

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Rank and world size of a process, as given by flags or environment variables. */
export interface DiscoveredRank {
  readonly rank: number;
  readonly worldSize: number;
  /** Index of the rank among the ranks of this host. Absent: the launcher does not set the local rank. */
  readonly localRank?: number;
  /** Address at which rank 0 hosts the rendezvous. Absent: neither flags nor environment contain the address. */
  readonly coordinator?: Address;
  /** Source of the rank: `flags`, or the name of a row of `rankSources`. */
  readonly source: string;
}

/** Values of `--rank` and `--world-size`, as typed. */
export interface RankFlags {
  readonly rank?: string | undefined;
  readonly worldSize?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

const wholeNumber = (name: string, text: string): number => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value))
    throw new ConfigError([
      `${name}=${text}: must be a whole number from 0; correct or unset it in the environment of this process`,
    ]);
  return value;
};

const checkedRank = (
  rank: readonly [name: string, text: string],
  worldSize: readonly [name: string, text: string],
  localRank?: readonly [name: string, text: string],
): { rank: number; worldSize: number; localRank?: number } => {
  const ranks = wholeNumber(...worldSize);
  const below = (name: string, text: string): number => {
    const value = wholeNumber(name, text);
    if (value >= ranks)
      throw new ConfigError([
        `${name}=${text}: must be below ${worldSize[0]}=${worldSize[1]}, because ranks are numbered from 0; start as many processes as there are ranks`,
      ]);
    return value;
  };
  return { rank: below(...rank), worldSize: ranks, ...(localRank && { localRank: below(...localRank) }) };
};

/** Parses `host:port`, with an IPv6 address in brackets. @throws ConfigError that names `origin`. */
export const parseAddress = (origin: string, text: string): Address => {
  const parts = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(parts?.[3]);
  if (parts === null || port < 1 || port > 65535)
    throw new ConfigError([
      `${origin}=${text}: must be host:port with a port from 1 to 65535, such as node-0:29410 or [fd00::1]:29410`,
    ]);
  return { host: parts[1] ?? parts[2]!, port };
};

const coordinatorOf = (env: Environment): Address | undefined => {
  const { SKEIN_COORDINATOR: own, MASTER_ADDR: host, MASTER_PORT: port } = env;
  if (own !== undefined) return parseAddress("SKEIN_COORDINATOR", own);
  if (host === undefined && port === undefined) return undefined;
  if (host === undefined || port === undefined) {
    const [has, lacks] = host === undefined ? ["MASTER_PORT", "MASTER_ADDR"] : ["MASTER_ADDR", "MASTER_PORT"];
    throw new ConfigError([
      `${has}=${host ?? port} is set without ${lacks}; an address needs both: set ${lacks} too, or SKEIN_COORDINATOR=host:port instead`,
    ]);
  }
  return parseAddress("MASTER_ADDR:MASTER_PORT", `${host.includes(":") ? `[${host}]` : host}:${port}`);
};

const fromFlags = ({ rank, worldSize }: RankFlags): Omit<DiscoveredRank, "coordinator"> | undefined => {
  if (rank === undefined && worldSize === undefined) return undefined;
  if (rank === undefined || worldSize === undefined) {
    const [has, lacks] =
      rank === undefined ? [`--world-size ${worldSize}`, "--rank"] : [`--rank ${rank}`, "--world-size"];
    throw new ConfigError([`${has} is given without ${lacks}; a rank needs the number of ranks: give both`]);
  }
  return { ...checkedRank(["--rank", rank], ["--world-size", worldSize]), source: "flags" };
};

const fromEnvironment = (env: Environment): Omit<DiscoveredRank, "coordinator"> | undefined => {
  for (const row of rankSources) {
    if (row.requires !== undefined && env[row.requires] === undefined) continue;
    const rank = env[row.rank];
    const sizeName = row.worldSize.find((name) => env[name] !== undefined);
    if (rank === undefined) continue;
    if (sizeName === undefined)
      throw new ConfigError([
        `${row.rank}=${rank} is set without ${row.worldSize.join(" or ")}; a rank needs the number of ranks: set it in the environment of this process`,
      ]);
    const local = row.localRank === undefined ? undefined : env[row.localRank];
    return {
      ...checkedRank(
        [row.rank, rank],
        [sizeName, env[sizeName]!],
        local === undefined ? undefined : [row.localRank!, local],
      ),
      source: row.name,
    };
  }
  for (const [size, rank] of [
    ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"],
    ["PMI_SIZE", "PMI_RANK"],
    ["WORLD_SIZE", "RANK"],
  ] as const) {
    if (env[size] !== undefined)
      throw new ConfigError([
        `${size}=${env[size]} is set without ${rank}; a process of a world needs its rank: set ${rank}, or unset ${size}`,
      ]);
  }
  return undefined;
};

/**
 * Determines the rank of this process from flags or, if there are none, from the variables of its launcher (the rows of
 * `rankSources`, in order). The coordinator's address comes from `SKEIN_COORDINATOR` or, if that variable is not set,
 * from `MASTER_ADDR` and `MASTER_PORT`.
 *
 * @returns undefined if this process was not started as one of several processes.
 * @throws ConfigError if a value is not a number, if the rank is not below the number of ranks, or if only one value of
 * a pair is given.
 * @example discoverRank({ RANK: "1", WORLD_SIZE: "4" }) // { rank: 1, worldSize: 4, source: "the environment" }
 */
export const discoverRank = (env: Environment, flags: RankFlags = {}): DiscoveredRank | undefined => {
  const found = fromFlags(flags) ?? fromEnvironment(env);
  if (found === undefined) return undefined;
  const coordinator = coordinatorOf(env);
  return { ...found, ...(coordinator && { coordinator }) };
};
