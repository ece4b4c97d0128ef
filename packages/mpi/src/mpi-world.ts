import { hostname } from "node:os";
import type { Worker } from "node:worker_threads";
import type { Facts, LossKind } from "@skein/collectives";
import { hasOwnCore, type RankAddress, spinsOnOwnCore, startThread } from "@skein/collectives/node";
import { checkRankMemory, LocalRanks, type Preference, type RankMemory } from "@skein/collectives/transport";
import { InvariantError, SkeinError } from "@skein/tensor-core";
import { type MpiCompanionInput, type MpiCompanionEvent, threadsOfRank } from "./companion-messages.ts";
import { MpiError } from "./errors.ts";
import type { MpiWorldConnection } from "./join.ts";
import type { LoadMpiOptions } from "./load-addon.ts";
import { type OpenMpiOptions, openMpi } from "./world.ts";

export interface MpiWorldOptions
  extends RankMemory,
    Pick<LoadMpiOptions, "addon" | "cacheFolder">,
    Pick<OpenMpiOptions, "spinMicroseconds" | "allowSingleton"> {
  /** Expected rank of this process, checked against MPI. Absent: the rank that MPI assigns. */
  readonly rank?: number;
  /** Expected number of ranks, checked against MPI. Absent: the number that MPI reports. */
  readonly worldSize?: number;
  /** Maximum time that a rank waits for a peer before the world fails. Default: 60 s. */
  readonly timeoutMilliseconds?: number;
  /** Settings for the choice of algorithms. Hosts come from MPI. */
  readonly preference?: Omit<Preference, "hosts">;
  /**
   * Additional settings that must be equal on all ranks of all processes. Ranks compare these settings when they join.
   */
  readonly facts?: Facts;
}

/** A world over MPI, as seen by the process of one rank. Each process has exactly one rank. */
export interface MpiProcessWorld {
  readonly rank: number;
  readonly worldSize: number;
  /** Ranks by host, as MPI reports them. */
  readonly hosts: readonly (readonly number[])[];
  /** Version string of the MPI library. */
  readonly version: string;
  /**
   * Placeholder addresses, one per rank, because a roster needs an address per rank. The addresses are never dialed:
   * MPI connects its ranks itself.
   */
  readonly addresses: readonly RankAddress[];
  /** Broadcasts rank 0's text to all ranks, before `connect`. Either all ranks or no rank must call this method. */
  share(words: string | undefined): Promise<string>;
  /** Creates communicators with all other ranks, which must also call `connect`, and starts to execute requests. */
  connect(): Promise<void>;
  /**
   * Returns the connection that `joinMpiWorld` takes for this process's rank. Call this method after `connect`. The
   * connection can be posted to a worker. `joinWorld` also accepts the connection, but then only the companion executes
   * requests.
   */
  connection(rank: number): MpiWorldConnection;
  /** Watches `worker`, the compute thread. Fails the world immediately if the worker ends with an error. */
  watch(rank: number, worker: Worker): void;
  /** Reports to this process that a rank is lost. */
  reportLost(rank: number, reason?: string, kind?: LossKind): void;
  /**
   * Stops the companion and finalizes MPI. Every rank must call this method when it has finished. After a failure MPI
   * is not finalized, so that the launcher treats the exiting process as failed and stops the other processes.
   */
  close(): Promise<void>;
}

// Time that a rank polls, yielding its core at each poll, before it sleeps and the progress thread polls. On a
// dedicated core, this time covers the usual delay of a peer. On a shared core, this time covers only a message
// transfer.
const callerSpinMicroseconds = 200;
const sharedSpinMicroseconds = 50;

/** Time limit for closing the companion. A companion that has not ended after this time hangs. */
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
 * Creates one rank's part of a world over MPI. An MPI launcher must have started this process. A companion thread
 * executes requests, or the rank's compute thread if it waits for a request immediately. Requests use point-to-point
 * calls or MPI's own collectives.
 *
 * @example
 * const world = await createMpiWorld({ memory, kernels });
 * await world.connect();
 * new Worker(file, { workerData: world.connection(world.rank) }); // in the worker: joinMpiWorld(workerData)
 * @throws ArgumentError if the memory is not shared or the module lacks a reduction; MpiError without an addon or a
 * launcher, or if addon and launcher do not match.
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
  checkRankMemory({ memory, kernels }); // Checked before MPI is opened, because a process can open MPI only once.
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
      `this process should be rank ${options.rank ?? rank} of ${options.worldSize ?? worldSize}, but it is rank ${rank} of ${worldSize} in MPI; start as many processes as the job has ranks`,
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
          if (!state.closed) fail(new InvariantError("the companion ended without being closed"));
          whenEnded();
        }),
      );
    });

  return {
    rank,
    worldSize,
    hosts,
    version,
    // A roster refuses port 0; port 9 (discard) has no listener by convention.
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
