import type { MpiAddon } from "./addon.ts";
import { MpiError } from "./errors.ts";
import { findLauncher } from "./launcher.ts";
import { loadMpi, type LoadMpiOptions } from "./load-addon.ts";
import { type Answer, type Command, Requests } from "./requests.ts";

/** Options for opening MPI, including the choice of the addon. */
export interface OpenMpiOptions extends LoadMpiOptions {
  /** An addon that is already loaded. */
  readonly loaded?: MpiAddon;
  /** Whether to open a world of one rank if no launcher started this process, instead of throwing. Default: false. */
  readonly allowSingleton?: boolean;
  /**
   * Time that the progress thread polls, yielding its core at each poll, before it sleeps between polls. A longer time
   * reduces the latency of small messages, and occupies a core. The value of the first thread of a process that opens
   * MPI is used. Default: 50 µs.
   */
  readonly spinMicroseconds?: number;
}

/** All ranks started by the launcher, as seen by one thread of this process. */
export interface MpiWorld {
  readonly rank: number;
  readonly size: number;
  /** Ranks by host, in the order of each host's lowest rank, for two-level algorithms. */
  readonly hosts: readonly (readonly number[])[];
  /** Ranks on this host, including this rank. */
  readonly hostRanks: readonly number[];
  /** Version string of the MPI library. */
  readonly version: string;
  /** Whether several threads may call MPI, one at a time. */
  readonly serialized: boolean;
  /** Object with which transports and collectives post their commands to the progress thread. */
  readonly requests: Requests;
  /**
   * Broadcasts `bytes` of rank `root` to all ranks. For use at start-up, for example for the coordinator's address and
   * the job.
   */
  broadcastBytes(bytes: Uint8Array | undefined, root?: number): Promise<Uint8Array>;
  /** Waits for all ranks. */
  barrier(): Promise<void>;
  /**
   * Closes MPI in this process. Call this method one time, when all ranks have finished: launchers treat a rank that
   * exits without closing MPI as failed.
   *
   * @throws MpiError `mpi-call` while calls are in flight. After a failed collective, calls stay in flight permanently,
   * so use `abort` instead.
   */
  finalize(): Promise<void>;
  /** Stops all ranks of the job immediately, with the given exit code. */
  abort(code: number): Promise<never>;
}

const spinMicrosecondsByDefault = 50;

/** Posts a command, and throws unless the outcome is "done". */
export const demand = async (requests: Requests, what: string, command: Command): Promise<Answer> => {
  const answer = await requests.post(command);
  if (answer.outcome === "done") return answer;
  if (answer.outcome === "stopped")
    throw new MpiError(
      "mpi-closed",
      `${what}: ${answer.message}; a process can open MPI only once, before all its work, and must close it after all its work`,
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
 * Opens MPI in this thread. Every rank must open MPI. The first thread of a process starts the progress thread, which
 * calls MPI for all threads; later threads use the same progress thread. Returns when all ranks have opened MPI.
 *
 * @throws MpiError `mpi-missing` without an addon; `mpi-launcher` if no launcher, or a launcher of another MPI, started
 * this process.
 */
export const openMpi = async (options: OpenMpiOptions = {}): Promise<MpiWorld> => {
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
      throw new MpiError("mpi-call", "MPI_Abort returned");
    },
  };
};
