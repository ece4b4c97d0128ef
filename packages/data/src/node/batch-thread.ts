import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { ArgumentError } from "@skein/tensor-core";
import { threadFile } from "@skein/tensor-core/backend";
import type { Samples } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import { shardRange } from "../order.ts";
import { type Batch, viewBatch } from "../records.ts";
import type { DamagedImage } from "./image-reader.ts";
import { controlWord, makeSlots, type Slots, slotOf } from "./prefetch-slots.ts";
import type { BatchOrder, PrefetchInput, PrefetchMessage } from "./prefetch-worker.ts";

export interface BatchThreadOptions {
  /** Batches that may wait ahead of whoever takes them. */
  readonly slots: number;
  /** Is told of images that others take the place of; each once, by the first thread that finds it. */
  readonly damaged: (image: DamagedImage) => void;
}

/** A thread that assembles batches in shared memory, ahead of who takes them. */
export class BatchThread {
  private readonly samples: Samples;
  private readonly slots: Slots;
  private readonly worker: Worker;
  private readonly size: number;
  private failure: Error | undefined;
  private taken = 0;

  constructor(samples: Samples, order: BatchOrder, { slots, damaged }: BatchThreadOptions) {
    if (!Number.isInteger(slots) || slots < 2)
      throw new ArgumentError(
        `prefetch with ${slots} slots is not possible; use at least 2, one to fill while the other is read`,
      );
    const { begin, end } = shardRange(order.batchSize, order);
    this.samples = samples;
    this.size = end - begin;
    this.slots = makeSlots(samples, this.size, slots);
    const input: PrefetchInput = { samples, order, slots: this.slots };
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
      else this.fail(new DataError(message.message));
    });
    this.worker.once("error", (error: Error) => this.fail(error));
  }

  private fail(error: Error): void {
    this.failure ??= error;
    Atomics.notify(this.slots.control, controlWord.produced);
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
  async next(): Promise<{ readonly batch: Batch; readonly keptImages: number }> {
    const { control } = this.slots;
    if (this.taken > 0) {
      Atomics.store(control, controlWord.consumed, this.taken);
      Atomics.notify(control, controlWord.consumed);
    }
    const failure = await this.ahead(1);
    if (failure !== undefined) throw failure;
    const batch = viewBatch(this.samples, this.size, slotOf(this.slots, this.taken));
    const keptImages = this.slots.kept[this.taken % this.slots.count]!;
    this.taken++;
    return { batch, keptImages };
  }

  /** End the thread, whatever it does. */
  async close(): Promise<void> {
    Atomics.store(this.slots.control, controlWord.closed, 1);
    Atomics.notify(this.slots.control, controlWord.consumed);
    await this.worker.terminate();
  }
}
