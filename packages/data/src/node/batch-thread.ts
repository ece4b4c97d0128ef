import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { ArgumentError, InvariantError } from "@skein/tensor-core";
import { threadFile } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import { shardRange } from "../order.ts";
import { type Batch, type SampleSpecs, viewBatch } from "../records.ts";
import type { PlacedLane } from "../streams/streamed-records.ts";
import type { DamagedImage } from "./image-reader.ts";
import { controlWord, makeSlots, readLanes, type Slots, slotOf } from "./prefetch-slots.ts";
import type { BatchOrder, PrefetchInput, PrefetchMessage } from "./prefetch-worker.ts";

export interface BatchThreadOptions {
  /** Batches that may wait ahead of whoever takes them. */
  readonly slots: number;
  /** Is told of images that others take the place of; each once, by the first thread that finds it. */
  readonly damaged: (image: DamagedImage) => void;
}

/** A batch that was taken from a thread. */
export interface TakenBatch {
  readonly batch: Batch;
  /** How many of its images were decoded before, and kept. */
  readonly keptImages: number;
  /** Where lanes of a stream stand behind it. */
  readonly lanes: readonly PlacedLane[];
}

/** A thread that assembles batches in shared memory, ahead of who takes them. */
export class BatchThread {
  private readonly samples: SampleSpecs;
  private readonly slots: Slots;
  private readonly worker: Worker;
  private readonly size: number;
  private readonly over: PromiseWithResolvers<void> = Promise.withResolvers();
  private failure: Error | undefined;
  private taken = 0;

  /** @param numLanes of a stream that it reads. Default: none. */
  constructor(which: BatchOrder, { slots, damaged }: BatchThreadOptions, numLanes = 0) {
    if (!Number.isInteger(slots) || slots < 2)
      throw new ArgumentError(
        `prefetch with ${slots} slots is not possible; use at least 2, one to fill while the other is read`,
      );
    const { begin, end } = shardRange(which.order.batchSize, which.order);
    this.samples = which.samples;
    this.size = end - begin;
    this.slots = makeSlots(this.samples, this.size, slots, numLanes);
    const input: PrefetchInput = { ...which, slots: this.slots };
    this.worker = new Worker(
      threadFile(() => new URL("./prefetch-worker.ts", import.meta.url), "@skein/data", existsSync),
      {
        workerData: input,
        name: "skein-prefetch",
        resourceLimits: { maxYoungGenerationSizeMb: 4 }, // short-lived views only; keeps the thread's memory small and flat
      },
    );
    this.worker.on("message", (message: PrefetchMessage) => {
      if (message.type === "damaged") damaged(message.image);
      else if (message.type === "failed") this.fail(new DataError(message.message));
      else this.over.resolve();
    });
    this.worker.once("error", (error: Error) => this.fail(error));
    this.worker.once("exit", () => {
      this.over.resolve();
      this.fail(new InvariantError("the thread that assembles batches has ended before it was closed"));
    });
  }

  private fail(error: Error): void {
    this.failure ??= error;
    Atomics.notify(this.slots.control, controlWord.produced);
  }

  /** Have the batches of an evaluation assembled once more; none are before. */
  beginEvaluation(): void {
    this.worker.postMessage("begin");
  }

  /** Wait until so many batches after those that were taken are there. @returns why they never will be, where so. */
  async ahead(count: number): Promise<Error | undefined> {
    const { control } = this.slots;
    for (;;) {
      const produced = Atomics.load(control, controlWord.produced);
      if (produced >= this.taken + count) return undefined;
      if (this.failure !== undefined) return this.failure;
      const change = Atomics.waitAsync(control, controlWord.produced, produced);
      if (change.async) await change.value;
    }
  }

  /** The next batch; waits when the thread is behind. Arrays of the batch given out before become invalid. */
  async next(): Promise<TakenBatch> {
    const { control } = this.slots;
    if (this.taken > 0) {
      Atomics.store(control, controlWord.consumed, this.taken);
      Atomics.notify(control, controlWord.consumed);
    }
    const failure = await this.ahead(1);
    if (failure !== undefined) throw failure;
    const batch = viewBatch(this.samples, this.size, slotOf(this.slots, this.taken));
    const keptImages = this.slots.kept[this.taken % this.slots.count]!;
    const lanes = readLanes(this.slots, this.taken);
    this.taken++;
    return { batch, keptImages, lanes };
  }

  /** End the thread, whatever it does; of a stream, once it does not begin to read further. */
  async close(): Promise<void> {
    const { control } = this.slots;
    Atomics.store(control, controlWord.closed, 1);
    // The thread may be between its look at `closed` and its wait for `consumed`: a change of that word ends the wait.
    Atomics.sub(control, controlWord.consumed, 1);
    Atomics.notify(control, controlWord.consumed);
    if (this.slots.lanes.length > 0) await this.over.promise;
    await this.worker.terminate();
  }
}
