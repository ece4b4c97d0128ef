import { hostname } from "node:os";
import type { Worker } from "node:worker_threads";
import type { Facts, LossKind } from "@skein/collectives";
import { hasOwnCore, type RankAddress, spinsOnOwnCore, startThread } from "@skein/collectives/node";
import { checkRankMemory, LocalRanks, type Preference, type RankMemory } from "@skein/collectives/transport";
import { InvariantError, SkeinError } from "@skein/tensor-core";
import { type MpiCompanionInput, type MpiCompanionEvent, threadsOfRank } from "./companion-messages.ts";
import { MpiError } from "./errors.ts";
import type { MpiWorldConnection } from "./join.ts";
import type { LoadOptions } from "./load-addon.ts";
import { type OpenOptions, openMpi } from "./world.ts";

export interface MpiWorldOptions
  extends RankMemory,
    Pick<LoadOptions, "addon" | "cacheFolder">,
    Pick<OpenOptions, "spinMicroseconds" | "allowSingleton"> {
  /** Rank of this process; left to MPI if not given, and checked if it is. The same holds for `worldSize`. */
  readonly rank?: number;
  readonly worldSize?: number;
  /** How long a rank waits for a peer before the world fails. Default: 60 s. */
  readonly timeoutMilliseconds?: number;
  /** What algorithms are chosen by; hosts are MPI's. */
  readonly preference?: Omit<Preference, "hosts">;
  /** What else must be the same on all ranks of all processes; they compare it when they join. */
  readonly facts?: Facts;
}

/** The one rank that a process holds, in a world over MPI. */
export interface MpiProcessWorld {
  readonly rank: number;
  readonly worldSize: number;
  /** Ranks by host, as MPI sees them. */
  readonly hosts: readonly (readonly number[])[];
  /** The MPI library, in its own words. */
  readonly version: string;
  /** For rosters, which want one for each rank; nobody calls there, as MPI finds its ranks itself. */
  readonly addresses: readonly RankAddress[];
  /** Give rank 0's words to all, before `connect`. Every rank calls it, or none. */
  share(words: string | undefined): Promise<string>;
  /** Make communicators with all other ranks, which do the same, and start to carry requests out. */
  connect(): Promise<void>;
  /**
   * What this process's rank passes to `joinMpiWorld`, after `connect`; may be posted to a worker. `joinWorld` takes
   * it, too: then the companion alone carries requests out.
   */
  connection(rank: number): MpiWorldConnection;
  /** Fail the world at once when `worker`, the compute thread, ends with an error. */
  watch(rank: number, worker: Worker): void;
  /** Tell this process that a rank is gone. */
  reportLost(rank: number, reason?: string, kind?: LossKind): void;
  /**
   * End the companion and close MPI. Every rank calls it when it has finished. After a failure MPI stays open: the
   * launcher takes a process that ends so for a failed one, and ends the others.
   */
  close(): Promise<void>;
}

// How long a rank looks for what it waits for, giving way at each look, before it sleeps and the progress thread looks:
// on a core of its own as long as a peer may be behind by, on a shared one as long as a message takes.
const callerSpinMicroseconds = 200;
const sharedSpinMicroseconds = 50;

/** A companion that has not ended after this long hangs. */
const closingMilliseconds = 5000;

const within = async (work: Promise<unknown>, milliseconds: number): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
};

/**
 * Hold one rank of a world over MPI; a launcher of MPI has started this process. Its requests are carried out by a
 * companion thread, or by the rank's own where it waits at once, over point-to-point calls or by MPI's own collectives.
 *
 * @example
 * const world = await createMpiWorld({ memory, kernels });
 * await world.connect();
 * new Worker(file, { workerData: world.connection(world.rank) }); // there: joinMpiWorld(workerData)
 * @throws ArgumentError when the memory is not shared or the module lacks a reduction; MpiError without an addon or a
 * launcher, or when they do not fit each other.
 */
export const createMpiWorld = async (options: MpiWorldOptions): Promise<MpiProcessWorld> => {
  const {
    memory,
    kernels,
    timeoutMilliseconds = 60_000,
    preference = {},
    facts,
    addon,
    cacheFolder,
    spinMicroseconds,
    allowSingleton = false,
  } = options;
  checkRankMemory({ memory, kernels }); // before MPI is opened, which is for once
  const load = {
    allowSingleton,
    ...(addon !== undefined && { addon }),
    ...(cacheFolder !== undefined && { cacheFolder }),
  };
  const mpi = await openMpi({ ...load, ...(spinMicroseconds !== undefined && { spinMicroseconds }) });
  const { rank, size: worldSize, hosts, version } = mpi;
  if ((options.worldSize ?? worldSize) !== worldSize || (options.rank ?? rank) !== rank)
    throw new MpiError(
      "mpi-launcher",
      `this process is to be rank ${options.rank ?? rank} of ${options.worldSize ?? worldSize}, but MPI calls it rank ${rank} of ${worldSize}; start as many processes as the job has ranks`,
    );

  const local = new LocalRanks({
    worldSize,
    ranks: [rank],
    memory,
    kernels,
    companionOnly: true,
    timeoutMilliseconds,
    facts,
  });
  const { state } = local;
  let communicators: readonly number[] = [];
  const connection = (wanted: number): MpiWorldConnection => ({
    ...local.connection(wanted, {
      spins: hasOwnCore({ hosts }, rank, threadsOfRank) ? spinsOnOwnCore : 0,
      preference: { ...preference, hosts },
    }),
    mpi: {
      load,
      communicators,
      spinMicroseconds: hasOwnCore({ hosts }, rank, 1) ? callerSpinMicroseconds : sharedSpinMicroseconds,
    },
  });
  let companion: Worker | undefined;
  let ended: Promise<void> = Promise.resolve();

  const startCompanion = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const workerData: MpiCompanionInput = { connection: connection(rank), load };
      const worker = startThread(
        () => new URL("./companion-worker.ts", import.meta.url),
        { workerData, name: `companion ${rank}` },
        "@skein/mpi",
      );
      companion = worker;
      const fail = (error: Error): void => {
        state.failWith(error, 0);
        reject(error);
      };
      worker.on("message", (event: MpiCompanionEvent) => {
        if (event.type === "connected") {
          communicators = event.communicators;
          resolve();
        } else fail(new SkeinError(event.kind, event.code, event.message));
      });
      worker.once("error", fail);
      ended = new Promise((whenEnded) =>
        worker.once("exit", () => {
          if (!state.closed) fail(new InvariantError("the companion ended by itself"));
          whenEnded();
        }),
      );
    });

  return {
    rank,
    worldSize,
    hosts,
    version,
    // A roster refuses port 0; 9 is where nothing listens by convention.
    addresses: [{ host: hostname(), port: 9 }],
    share: async (words) => {
      const bytes = rank === 0 ? new TextEncoder().encode(words ?? "") : undefined;
      return new TextDecoder().decode(await mpi.broadcastBytes(bytes));
    },
    connect: startCompanion,
    connection,
    watch: (watched, worker) => {
      worker.once("exit", (code) => {
        if (code !== 0) state.failLost(watched, 0, "its thread ended");
      });
    },
    reportLost: (lost, reason = "its thread ended", kind = "lost") => state.failLost(lost, 0, reason, kind),
    close: async () => {
      const failed = state.failure() !== undefined;
      state.close();
      companion?.postMessage("end");
      if (!(await within(ended, closingMilliseconds))) await companion?.terminate();
      if (!failed) await within(mpi.finalize(), timeoutMilliseconds);
    },
  };
};
