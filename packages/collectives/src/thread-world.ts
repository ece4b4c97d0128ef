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
   * Maximum time that a rank waits for a peer before the group fails. Default: 60 s, which is enough for one rank to
   * evaluate an epoch.
   */
  readonly timeoutMilliseconds?: number;
  /**
   * Number of polls for a peer's message before a rank sleeps. Default: 5000 (about 10 µs) if every rank has a
   * dedicated core, otherwise 0.
   */
  readonly spins?: number;
  /** Settings for the choice of algorithms. */
  readonly preference?: Preference;
}

/**
 * Ranks of one process. Each rank has a compute thread, which the caller starts, and a companion thread, which the
 * world starts.
 */
export interface ThreadWorld {
  readonly worldSize: number;
  /** Returns the connection that `joinWorld` takes for rank `rank`. The connection can be posted to a worker. */
  connection(rank: number): WorldConnection;
  /** Watches `worker`, the compute thread of `rank`. Fails the group immediately if the worker ends with an error. */
  watch(rank: number, worker: Worker): void;
  /** Reports to all ranks that a rank is lost, with the reason. */
  reportLost(rank: number, reason?: string): void;
  /** Stops the companion threads. Call this method when every rank has finished. */
  close(): Promise<void>;
}

// Measured on 2 cores, 1 MiB (docs/experiments.md): two ranks take 24 µs if they poll 3000 times or more, and 75 µs if
// they sleep at once. Four ranks take 250 µs if they sleep, and 570 µs if each rank polls 30,000 times on a core that
// another rank needs.
/** Number of polls for a message before a rank with a dedicated core sleeps. */
export const spinsOnOwnCore = 5000;

/**
 * Creates a world of thread ranks: one control block, one companion thread per rank.
 * @throws ArgumentError if the memory is not shared or the module lacks a reduction; ThreadFileError if a bundle lacks
 * the companion's file.
 * @example
 * ```ts
 * const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
 * const world = createThreadWorld({ worldSize: 2, memory, kernels: "none" });
 * const ranks = [0, 1].map((rank) => joinWorld(world.connection(rank))); // usually each in its own thread
 * console.log(ranks.map(({ rank, worldSize }) => `${rank} of ${worldSize}`)); // ['0 of 2', '1 of 2']
 * await world.close();
 * ```
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
    throw new ArgumentError(`worldSize ${worldSize} is not a positive integer; pass the number of ranks, 1 or more`);
  if (!(memory.buffer instanceof SharedArrayBuffer))
    throw new ArgumentError(
      "thread ranks need a shared WebAssembly.Memory, and this memory is not shared; create it with { shared: true }",
    );
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
      // A companion allocates little; a larger young generation would only retain more garbage.
      resourceLimits: { maxYoungGenerationSizeMb: 2 },
    });
    worker.unref(); // A companion never keeps a process alive after its ranks have finished.
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
      for (const { worker } of companions) worker.ref(); // Wait until the companions have ended.
      local.state.close();
      await Promise.all(companions.map(({ ended }) => ended));
      const failed = companions.find(({ error }) => error() !== undefined);
      if (failed !== undefined) throw failed.error();
    },
  };
};
