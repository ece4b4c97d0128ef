import type { MpiAddon } from "./addon.ts";
import { MpiError } from "./errors.ts";
import { findLauncher } from "./launcher.ts";
import { loadMpi, type LoadOptions } from "./load-addon.ts";
import { type Answer, type Command, Requests } from "./requests.ts";

/** Which addon is loaded, and how MPI is opened. */
export interface OpenOptions extends LoadOptions {
  /** An addon that is loaded already. */
  readonly loaded?: MpiAddon;
  /** Open a world of one rank where no launcher started this process, instead of refusing. Default: false. */
  readonly allowSingleton?: boolean;
  /**
   * How long the progress thread looks for news, giving way at each look, before it sleeps between looks. More lowers
   * the time of small messages, and costs a core. The first thread of a process that opens MPI decides. Default: 50.
   */
  readonly spinMicroseconds?: number;
}

/** All ranks that the launcher started, as one thread of this process sees them. */
export interface MpiWorld {
  readonly rank: number;
  readonly size: number;
  /** Ranks by host, in order of each host's lowest rank: what two-level algorithms want to know. */
  readonly hosts: readonly (readonly number[])[];
  /** Ranks on this host, this one included. */
  readonly hostRanks: readonly number[];
  /** The library's own words for itself. */
  readonly version: string;
  /** Threads may take turns in calling MPI. */
  readonly serialized: boolean;
  /** Commands to the progress thread, for transports and collectives. */
  readonly requests: Requests;
  /** Give `bytes` of rank `root` to all ranks. For start-up: where the coordinator listens, what job it is. */
  broadcastBytes(bytes: Uint8Array | undefined, root?: number): Promise<Uint8Array>;
  /** Wait for all ranks. */
  barrier(): Promise<void>;
  /**
   * Close MPI in this process, once, when all ranks have ended their work: launchers take a rank that exits without it
   * for a failed one.
   *
   * @throws MpiError `mpi-call` while anything is under way, which after a failed collective is for ever: end by
   * `abort` then.
   */
  finalize(): Promise<void>;
  /** End all ranks of the job at once, with this exit code. */
  abort(code: number): Promise<never>;
}

const spinMicrosecondsByDefault = 50;

/** Post, and turn whatever is not done into an error. */
export const demand = async (requests: Requests, what: string, command: Command): Promise<Answer> => {
  const answer = await requests.post(command);
  if (answer.outcome === "done") return answer;
  if (answer.outcome === "stopped")
    throw new MpiError(
      "mpi-closed",
      `${what}: ${answer.message}; a process opens MPI once, before all its work, and closes it after`,
    );
  throw new MpiError("mpi-call", `${what} failed in MPI: ${answer.message}`);
};

const takeAnswers = (addon: MpiAddon, spinMicroseconds: number): Requests => {
  try {
    return new Requests(addon, spinMicroseconds);
  } catch (error) {
    throw new MpiError("mpi-call", `opening MPI failed: ${(error as Error).message}; open it once in each thread`, {
      cause: error,
    });
  }
};

const groupHosts = (leaders: readonly number[]): number[][] =>
  [...new Set(leaders)].map((leader) => leaders.flatMap((other, rank) => (other === leader ? [rank] : [])));

/**
 * Open MPI in this thread; every rank does. The first thread of a process starts the progress thread, which calls MPI
 * for all; later ones join it. Returns when all ranks have come.
 *
 * @throws MpiError `mpi-missing` without an addon; `mpi-launcher` when no launcher started this process, or one of
 * another MPI.
 */
export const openMpi = async (options: OpenOptions = {}): Promise<MpiWorld> => {
  const { environment = process.env, spinMicroseconds = spinMicrosecondsByDefault } = options;
  const launcher = findLauncher(environment);
  if (launcher === undefined && options.allowSingleton !== true)
    throw new MpiError(
      "mpi-launcher",
      "no MPI launcher started this process (none of OMPI_COMM_WORLD_SIZE, PMIX_RANK and PMI_RANK is set); start it by mpirun -n <ranks> or srun --mpi=pmix",
    );
  const addon = options.loaded ?? loadMpi(options);
  const requests = takeAnswers(addon, spinMicroseconds);
  const { values } = await demand(requests, "opening MPI", { kind: "initialize" });
  const [rank, size, serialized, ...leaders] = values as [number, number, number, ...number[]];
  if (launcher?.worldSize !== undefined && launcher.worldSize !== size)
    throw new MpiError(
      "mpi-launcher",
      `the launcher started ${launcher.worldSize} ranks, but ${addon.family} ${addon.version} sees a world of ${size}; use the mpirun of the library that the addon was built for (skein-train mpi build --compiler ...)`,
    );
  const hosts = groupHosts(leaders);

  const broadcast = (bytes: Uint8Array, root: number): Promise<Answer> =>
    demand(requests, "a broadcast", {
      kind: "broadcast",
      input: bytes,
      output: bytes,
      count: bytes.byteLength,
      peer: root,
    });
  return {
    rank,
    size,
    hosts,
    serialized: serialized === 1,
    hostRanks: hosts.find((ranks) => ranks.includes(rank))!,
    version: addon.library().split("\n")[0]!.replaceAll("\0", "").trim(),
    requests,
    broadcastBytes: async (bytes, root = 0) => {
      if (rank === root && bytes === undefined)
        throw new MpiError("mpi-call", `rank ${rank} is the root of a broadcast without bytes`);
      const length = Float64Array.of(rank === root ? bytes!.byteLength : 0);
      await broadcast(new Uint8Array(length.buffer), root);
      const payload = rank === root ? bytes! : new Uint8Array(length[0]!);
      if (payload.byteLength > 0) await broadcast(payload, root);
      return payload;
    },
    barrier: async () => void (await demand(requests, "a barrier", { kind: "barrier" })),
    finalize: async () => void (await demand(requests, "closing MPI", { kind: "finalize" })),
    abort: async (code) => {
      await demand(requests, "aborting", { kind: "abort", peer: code });
      throw new MpiError("mpi-call", "MPI_Abort came back");
    },
  };
};
