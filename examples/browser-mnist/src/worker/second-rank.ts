import { joinWorld } from "@skein/collectives";
import { LocalRanks, type WorldConnection } from "@skein/collectives/transport";
import type { Communicator } from "@skein/tensor-core";
import type { Settings } from "../messages.ts";
import type { DigitRecords } from "./digit-training.ts";
import type { SharedKernels } from "./open-backend.ts";

/** What rank 0 tells rank 1. */
export type RankCommand =
  | { readonly type: "open"; readonly shared: SharedKernels; readonly records: DigitRecords }
  /** New parameters, in a new world. */
  | { readonly type: "begin"; readonly connection: WorldConnection; readonly settings: Settings }
  | { readonly type: "step" };

/** What rank 1 answers. */
export type RankReport = { readonly type: "begun" } | { readonly type: "failed"; readonly message: string };

/** A tab that is not looked at runs slowly. */
const timeoutMilliseconds = 60_000;

/**
 * Rank 1, in a worker of its own: it does every step that rank 0 does, on its half of the batch. Both ranks' vectors
 * lie in one memory, where each adds up the other's in place; whoever waits for a collective carries it out. Rank 0
 * blocks while it waits, so messages arrive between its steps.
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

  /** Make a world of two ranks, with new parameters on rank 1. @returns what rank 0 reaches it by. */
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
    return joinWorld(ranks.connection(0));
  }

  /** Let it do the step that this rank does next. */
  step(): void {
    this.tell({ type: "step" });
  }

  private tell(command: RankCommand): void {
    this.worker.postMessage(command);
  }
}
