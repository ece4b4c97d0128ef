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
  /** Maximum number of batches assembled ahead of the consumer. */
  readonly slots: number;
  /** Called once for each damaged image that is replaced by another image, even if several threads find the damage. */
  readonly damaged: (image: DamagedImage) => void;
}

/** A batch returned by the thread. */
export interface TakenBatch {
  readonly batch: Batch;
  /** Number of images of the batch that came from the cache. */
  readonly cachedImages: number;
  /** Positions of this rank's stream lanes (see `Lane`) after this batch. */
  readonly lanes: readonly PlacedLane[];
}

/** Thread that assembles batches in shared memory ahead of the consumer. */
export class BatchThread {
  private readonly samples: SampleSpecs;
  private readonly slots: Slots;
  private readonly worker: Worker;
  private readonly size: number;
  private readonly ended: PromiseWithResolvers<void> = Promise.withResolvers();
  private failure: Error | undefined;
  private taken = 0;

  /**
   * Allocates the ring buffer of batches, and starts the thread.
   *
   * @param numLanes Number of stream lanes (see `Lane`). Default: samples are not a stream.
   */
  constructor(batches: BatchOrder, { slots, damaged }: BatchThreadOptions, numLanes = 0) {
    if (!Number.isInteger(slots) || slots < 2)
      throw new ArgumentError(
        `prefetch with ${slots} slots is not possible; use at least 2, so that one slot is filled while another is read`,
      );
    const { begin, end } = shardRange(batches.order.batchSize, batches.order);
    this.samples = batches.samples;
    this.size = end - begin;
    this.slots = makeSlots(this.samples, this.size, slots, numLanes);
    const input: PrefetchInput = { ...batches, slots: this.slots };
    this.worker = new Worker(
      threadFile(() => new URL("./prefetch-worker.ts", import.meta.url), "@skein/data", existsSync),
      {
        workerData: input,
        name: "skein-prefetch",
        resourceLimits: { maxYoungGenerationSizeMb: 4 }, // suffices for short-lived views; keeps memory small
      },
    );
    this.worker.on("message", (message: PrefetchMessage) => {
      if (message.type === "damaged") damaged(message.image);
      else if (message.type === "failed") this.fail(new DataError(message.message));
      else this.ended.resolve();
    });
    this.worker.once("error", (error: Error) => this.fail(error));
    this.worker.once("exit", () => {
      this.ended.resolve();
      this.fail(new InvariantError("the thread that assembles batches exited before it was closed"));
    });
  }

  private fail(error: Error): void {
    this.failure ??= error;
    Atomics.notify(this.slots.control, controlWord.produced);
  }

  /** Starts to assemble the batches of the next evaluation. No evaluation batch is assembled before the first call. */
  beginEvaluation(): void {
    this.worker.postMessage("begin");
  }

  /**
   * Waits until the next `count` batches are ready.
   *
   * @returns undefined when the batches are ready, or the error that prevents these batches.
   */
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

  /** Returns the next batch, and waits for it if necessary. Arrays of the previously returned batch become invalid. */
  async next(): Promise<TakenBatch> {
    const { control } = this.slots;
    if (this.taken > 0) {
      Atomics.store(control, controlWord.consumed, this.taken);
      Atomics.notify(control, controlWord.consumed);
    }
    const failure = await this.ahead(1);
    if (failure !== undefined) throw failure;
    const batch = viewBatch(this.samples, this.size, slotOf(this.slots, this.taken));
    const cachedImages = this.slots.cached[this.taken % this.slots.count]!;
    const lanes = readLanes(this.slots, this.taken);
    this.taken++;
    return { batch, cachedImages, lanes };
  }

  /** Ends the thread immediately. A thread that reads a stream ends after its current read. */
  async close(): Promise<void> {
    const { control } = this.slots;
    Atomics.store(control, controlWord.closed, 1);
    // The thread may be between its check of `closed` and its wait for `consumed`; a change of `consumed` ends the
    // wait.
    Atomics.sub(control, controlWord.consumed, 1);
    Atomics.notify(control, controlWord.consumed);
    if (this.slots.lanes.length > 0) await this.ended.promise;
    await this.worker.terminate();
  }
}
