import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import { ArgumentError } from "@skein/tensor-core";
import { startThread } from "./start-thread.ts";
import { LocalRanks, openGroupState, type RankMemory } from "./control-block/local-ranks.ts";
import { reserveParts } from "./transport/thread-exchange.ts";
import type { Preference, WorldConnection } from "./control-block/world-connection.ts";

export interface ThreadWorldOptions extends RankMemory {
  readonly worldSize: number;
  /**
   * How long a rank waits for a peer before the group fails. Default 60 s: an epoch's evaluation on one rank fits into
   * it.
   */
  readonly timeoutMilliseconds?: number;
  /**
   * How often a rank looks for its peer's message before it sleeps. Default: 5000 (some 10 µs) where every rank has a
   * core, else 0.
   */
  readonly spins?: number;
  /** What algorithms are chosen by. */
  readonly preference?: Preference;
}

/** Ranks of one process, each with a compute thread of the caller's and a companion thread of ours. */
export interface ThreadWorld {
  readonly worldSize: number;
  /** What rank `rank` passes to `joinWorld`; may be posted to a worker. */
  connection(rank: number): WorldConnection;
  /** Fail the group at once when `worker`, the compute thread of `rank`, ends with an error. */
  watch(rank: number, worker: Worker): void;
  /** Tell everyone that a rank is gone, and why. */
  reportLost(rank: number, reason?: string): void;
  /** End the companions. Call when every rank has finished. */
  close(): Promise<void>;
}

// Measured on 2 cores, 1 MiB (docs/experiments.md): two ranks take 24 µs when they look 3000 times or more, and 75 µs
// when they sleep at once; but four ranks take 250 µs when they sleep, and 570 µs when each looks 30,000 times on a
// core that another needs.
/** How often a rank with a core of its own looks for a message before it sleeps. */
export const spinsOnOwnCore = 5000;

/**
 * Make a world of thread ranks: one control block, one companion thread per rank.
 *
 * @example
 * const world = createThreadWorld({ worldSize: 2, memory, kernels: module });
 * new Worker(file, { workerData: world.connection(0) }); // there: joinWorld(workerData)
 * @throws ArgumentError when the memory is not shared or the module lacks a reduction; ThreadFileError in a bundle that
 * has left the companion's file behind.
 */
export const createThreadWorld = (options: ThreadWorldOptions): ThreadWorld => {
  const {
    worldSize,
    memory,
    kernels,
    timeoutMilliseconds = 60_000,
    spins = worldSize <= availableParallelism() ? spinsOnOwnCore : 0,
    preference = {},
  } = options;
  if (!Number.isInteger(worldSize) || worldSize < 1)
    throw new ArgumentError(`a world of ${worldSize} ranks cannot be made; worldSize is a whole number from 1`);
  if (!(memory.buffer instanceof SharedArrayBuffer))
    throw new ArgumentError("thread ranks need a shared WebAssembly.Memory; create it with { shared: true }");
  const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
  const local = new LocalRanks({ worldSize, ranks, memory, kernels, companionOnly: false, timeoutMilliseconds });
  const exchangeParts = reserveParts(memory, worldSize);
  const connection = (rank: number): WorldConnection => {
    if (!ranks.includes(rank))
      throw new ArgumentError(`rank ${rank} is not in a world of ${worldSize}; use 0 to ${worldSize - 1}`);
    return local.connection(rank, { spins, preference, exchangeParts });
  };
  const reportLost = (rank: number, reason = "its thread ended"): void =>
    openGroupState(connection(rank)).failLost(rank, 0, reason);

  const companions = Array.from({ length: worldSize }, (_, rank) => {
    const worker = startThread(() => new URL("./companion/companion-worker.ts", import.meta.url), {
      workerData: connection(rank),
      name: `companion ${rank}`,
      // a companion makes little garbage; a larger nursery would only hold more of it
      resourceLimits: { maxYoungGenerationSizeMb: 2 },
    });
    worker.unref(); // never keeps a process alive whose ranks are done
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    let failure: unknown;
    worker.once("error", (error) => {
      failure = error;
      reportLost(rank, `its companion thread failed: ${(error as Error).message}`);
    });
    return { worker, ended, error: () => failure };
  });

  return {
    worldSize,
    connection,
    reportLost,
    watch: (rank, worker) => {
      worker.once("exit", (code) => {
        if (code !== 0) reportLost(rank);
      });
    },
    close: async () => {
      for (const { worker } of companions) worker.ref(); // now their end is awaited
      local.state.close();
      await Promise.all(companions.map(({ ended }) => ended));
      const failed = companions.find(({ error }) => error() !== undefined);
      if (failed !== undefined) throw failed.error();
    },
  };
};
