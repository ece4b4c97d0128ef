import type { Augmentation } from "../augment.ts";
import type { TrainingOptions } from "../batches.ts";
import { isEncoded } from "../encoded-records.ts";
import { ArgumentError } from "@skein/tensor-core";
import { advance, type DataPosition, shardRange, stepsPerEpoch } from "../order.ts";
import type { Batch } from "../records.ts";
import type { LanePosition } from "../streams/lane.ts";
import { isStreamed, numLanesOf, type PlacedLane, type TrainingSamples } from "../streams/streamed-records.ts";
import { lanePartsOf } from "../streams/lane-parts.ts";
import { BatchThread } from "./batch-thread.ts";
import type { DamagedImage } from "./image-reader.ts";

export interface PrefetchOptions extends TrainingOptions {
  /** Number of batches assembled ahead of the trainer. Default: 4. */
  readonly slots?: number;
  /** Augmentation of the images (field `inputs`). Absent: no augmentation. */
  readonly augmentation?: Augmentation | undefined;
  /**
   * Called once per process for each damaged image that is replaced by another image, and once per prefetcher for each
   * skipped sample of a stream.
   */
  readonly damaged?: ((image: DamagedImage) => void) | undefined;
  /**
   * Initial positions of all stream lanes, as returned by `next` on all ranks of an earlier run. The earlier run may
   * have had another number of ranks. Used instead of `position`. Absent: each lane starts at its beginning.
   */
  readonly lanes?: readonly LanePosition[] | undefined;
}

/** A batch prepared by a worker thread, and its position in the data. */
export interface Prefetched {
  /** Arrays of the batch, which are views of a slot. Valid until the next call of `next`. */
  readonly batch: Batch;
  /**
   * Position of the batch. For a stream, `epoch` is the number of completed passes over all shards (minimum over this
   * rank's lanes), and `step` is the number of batches so far.
   */
  readonly position: DataPosition;
  /** Number of images in the batch that came from the cache. Absent: no cache. */
  readonly cachedImages?: number;
  /** Positions of this rank's stream lanes after the batch. Absent: samples are not a stream. */
  readonly lanes?: readonly PlacedLane[];
}

/**
 * Assembles training batches in a worker thread ahead of the trainer, in shared memory. The batches equal the batches
 * of `trainingBatches`, regardless of timing. Batches of encoded samples equal batches of samples decoded in advance.
 * Images of later batches are decoded on libuv's threads while the trainer waits for earlier batches. Batches of a
 * stream depend on its shards, the seed and the number of lanes (see `Lane`), so that any number of ranks trains on the
 * same samples. Call `close` after the last batch; otherwise the worker thread never ends.
 */
export class Prefetcher {
  private readonly thread: BatchThread;
  private readonly steps: number;
  private readonly hasCache: boolean;
  private readonly numShards: number | undefined;
  private at: DataPosition;

  /** Starts the worker thread. @throws ArgumentError if the batch size is not a multiple of the number of lanes. */
  constructor(
    samples: TrainingSamples,
    { slots = 4, augmentation, damaged = () => undefined, lanes, ...options }: PrefetchOptions,
  ) {
    this.steps = stepsPerEpoch(samples.count, options.batchSize);
    this.at = options.position ?? { epoch: 0, step: 0 };
    this.hasCache = !isStreamed(samples) && isEncoded(samples) && samples.images.cache.capacity > 0;
    this.numShards = isStreamed(samples) ? samples.stream.shards.length : undefined;
    const threadOptions = { slots, damaged };
    if (isStreamed(samples)) {
      const numLanes = lanes?.length ?? numLanesOf(samples.stream, options);
      if (options.batchSize % numLanes !== 0)
        throw new ArgumentError(
          `a batch of ${options.batchSize} samples is not divisible by the ${numLanes} lanes of the stream; use a multiple of ${numLanes}`,
        );
      const range = shardRange(options.batchSize, options);
      const parts = lanePartsOf(range, options.batchSize / numLanes, numLanes);
      const placed = lanes && parts.map(({ lane }) => ({ lane, position: lanes[lane]! }));
      const order = { of: "stream", ...options, numLanes, lanes: placed, augmentation } as const;
      this.thread = new BatchThread({ samples, order }, threadOptions, parts.length);
    } else
      this.thread = new BatchThread({ samples, order: { of: "training", augmentation, ...options } }, threadOptions);
  }

  /**
   * Waits until the next `count` batches are prepared.
   *
   * @param count Number of batches, at most the number of slots minus 1.
   * @returns the error if one of these batches cannot be read; `next` returns the earlier batches and then throws the
   * error.
   */
  ahead(count: number): Promise<Error | undefined> {
    return this.thread.ahead(count);
  }

  /**
   * Returns the next batch, and waits for it if necessary. The previously returned batch becomes invalid.
   *
   * @throws DataError if a sample of this batch cannot be read.
   */
  async next(): Promise<Prefetched> {
    const { batch, cachedImages, lanes } = await this.thread.next();
    const position = this.at;
    this.at = advance(position, this.steps);
    if (this.numShards === undefined) return { batch, position, ...(this.hasCache && { cachedImages }) };
    const epoch = Math.min(...lanes.map(({ position: { shard } }) => Math.floor(shard / this.numShards!)));
    return { batch, position: { ...position, epoch }, lanes };
  }

  /** Ends the worker thread without waiting for the current batch. Resolves when pending decodes are done. */
  close(): Promise<void> {
    return this.thread.close();
  }
}
