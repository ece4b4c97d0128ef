import { createCommunicator } from "@skein/collectives";
import { LocalRanks, type WorldConnection } from "@skein/collectives/transport";
import type { Communicator } from "@skein/tensor-core";
import type { Settings } from "../messages.ts";
import type { DigitRecords } from "./digit-training.ts";
import type { SharedKernels } from "./open-backend.ts";

/** Messages from rank 0 to rank 1. */
export type RankCommand =
  | { readonly type: "open"; readonly shared: SharedKernels; readonly records: DigitRecords }
  /** Starts a training run with new parameters, over a new connection to rank 0. */
  | { readonly type: "begin"; readonly connection: WorldConnection; readonly settings: Settings }
  | { readonly type: "step" };

/** Messages from rank 1 to rank 0. */
export type RankReport = { readonly type: "begun" } | { readonly type: "failed"; readonly message: string };

/** Timeout of a collective in milliseconds. Long, because a tab in the background runs slowly. */
const timeoutMilliseconds = 60_000;

/**
 * Rank 1, in a separate worker, which runs the same steps as rank 0 on its half of the batch. The vectors of both ranks
 * are in one shared memory, in which each rank adds the vector of the other rank in place; the rank that waits for a
 * collective executes it. Rank 0 blocks while it waits, so messages are handled between its steps.
 */
export class SecondRank {
  private readonly worker = new Worker(new URL("./second-rank-worker.ts", import.meta.url), { type: "module" });
  private readonly shared: SharedKernels;
  private begun = Promise.withResolvers<void>();

  constructor(shared: SharedKernels, records: DigitRecords, fail: (message: string) => void) {
    this.shared = shared;
    this.worker.addEventListener("message", ({ data: report }: MessageEvent<RankReport>) => {
      if (report.type === "begun") this.begun.resolve();
      else fail(`rank 1: ${report.message}`);
    });
    this.worker.addEventListener("error", ({ message }) => fail(`rank 1: ${message || "its worker did not start"}`));
    this.tell({ type: "open", shared, records });
  }

  /** Connects both ranks for a new training run, with new parameters on rank 1. @returns the communicator of rank 0. */
  async begin(settings: Settings): Promise<Communicator> {
    const { memory, module: kernels } = this.shared;
    const ranks = new LocalRanks({
      worldSize: 2,
      ranks: [0, 1],
      memory,
      kernels,
      companionOnly: false,
      timeoutMilliseconds,
    });
    this.begun = Promise.withResolvers();
    this.tell({ type: "begin", connection: ranks.connection(1), settings });
    await this.begun.promise;
    return createCommunicator(ranks.connection(0));
  }

  /** Makes rank 1 run the next step. */
  step(): void {
    this.tell({ type: "step" });
  }

  private tell(command: RankCommand): void {
    this.worker.postMessage(command);
  }
}
