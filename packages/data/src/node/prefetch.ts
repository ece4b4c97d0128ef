import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { ArgumentError } from "@skein/tensor-core";
import { threadFile } from "@skein/tensor-core/backend";
import type { Augmentation } from "../augment.ts";
import type { TrainingOptions } from "../batches.ts";
import { advance, type DataPosition, shardRange, stepsPerEpoch } from "../order.ts";
import { type Batch, type Records, viewBatch } from "../records.ts";
import { controlWord, makeSlots, type Slots, slotOf } from "./prefetch-slots.ts";

export interface PrefetchOptions extends TrainingOptions {
  /** Batches that may wait ahead of the trainer. Default: 4. */
  readonly slots?: number;
  /** How images, the field `inputs`, change from epoch to epoch. Default: not at all. */
  readonly augmentation?: Augmentation | undefined;
}

/** A batch that a worker has prepared, and where in the data the next one begins. */
export interface Prefetched {
  /** Arrays over the slot: valid until the next call of `next`. */
  readonly batch: Batch;
  readonly position: DataPosition;
}

/**
 * Assembles training batches in a worker thread, ahead of the trainer, in shared memory. The batches are those of
 * `trainingBatches`, whatever the timing. Close it when done, else its worker waits for ever.
 */
export class Prefetcher {
  private readonly records: Records;
  private readonly slots: Slots;
  private readonly worker: Worker;
  private readonly size: number;
  private readonly steps: number;
  private failure: Error | undefined;
  private at: DataPosition;
  private taken = 0;

  constructor(records: Records, { slots = 4, augmentation, ...options }: PrefetchOptions) {
    if (!Number.isInteger(slots) || slots < 2)
      throw new ArgumentError(
        `prefetch with ${slots} slots is not possible; use at least 2, one to fill while the other is read`,
      );
    const { begin, end } = shardRange(options.batchSize, options);
    this.steps = stepsPerEpoch(records.count, options.batchSize);
    this.records = records;
    this.size = end - begin;
    this.slots = makeSlots(records, this.size, slots);
    this.at = options.position ?? { epoch: 0, step: 0 };
    this.worker = new Worker(
      threadFile(() => new URL("./prefetch-worker.ts", import.meta.url), "@skein/data", existsSync),
      {
        workerData: { records, options, augmentation, slots: this.slots },
        name: "skein-prefetch",
        resourceLimits: { maxYoungGenerationSizeMb: 4 }, // short-lived views only; keeps the thread's memory small and flat
      },
    );
    this.worker.once("error", (error: Error) => {
      this.failure = error;
      Atomics.notify(this.slots.control, controlWord.produced);
    });
  }

  /** The next batch; waits when the worker is behind. The batch given out before becomes invalid. */
  async next(): Promise<Prefetched> {
    const { control } = this.slots;
    if (this.taken > 0) {
      Atomics.store(control, controlWord.consumed, this.taken);
      Atomics.notify(control, controlWord.consumed);
    }
    for (
      let produced = Atomics.load(control, controlWord.produced);
      produced <= this.taken;
      produced = Atomics.load(control, controlWord.produced)
    ) {
      if (this.failure !== undefined) throw this.failure;
      const change = Atomics.waitAsync(control, controlWord.produced, produced);
      if (change.async) await change.value;
    }
    const position = this.at;
    const batch = viewBatch(this.records, this.size, slotOf(this.slots, this.taken));
    this.at = advance(position, this.steps);
    this.taken++;
    return { batch, position };
  }

  /** End the worker. */
  async close(): Promise<void> {
    Atomics.store(this.slots.control, controlWord.closed, 1);
    Atomics.notify(this.slots.control, controlWord.consumed);
    await this.worker.terminate();
  }
}
