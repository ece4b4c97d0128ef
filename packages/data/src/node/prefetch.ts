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
  /** Batches that may wait ahead of the trainer. Default: 4. */
  readonly slots?: number;
  /** How images, the field `inputs`, change from epoch to epoch. Default: not at all. */
  readonly augmentation?: Augmentation | undefined;
  /**
   * Is told of images that cannot be decoded and that others take the place of, and of samples of a stream that are
   * left out; each once, by the first of all threads of a process that finds it; of streams by the first that this one
   * finds. Default: nobody is.
   */
  readonly damaged?: ((image: DamagedImage) => void) | undefined;
  /**
   * Where all lanes of a stream stand, instead of a position: what `next` has told to all ranks, however many these
   * were. Default: at their beginnings.
   */
  readonly lanes?: readonly LanePosition[] | undefined;
}

/** A batch that a worker has prepared, and where in the data it begins. */
export interface Prefetched {
  /** Arrays over the slot: valid until the next call of `next`. */
  readonly batch: Batch;
  /** Of a stream: how many passes over all shards are done at least, by this rank's lanes, and batches so far. */
  readonly position: DataPosition;
  /** Where decoded images are kept: how many of the batch were. */
  readonly keptImages?: number;
  /** Of a stream: where the lanes that this rank reads stand behind the batch. */
  readonly lanes?: readonly PlacedLane[];
}

/**
 * Assembles training batches in a worker thread, ahead of the trainer, in shared memory. The batches are those of
 * `trainingBatches`, whatever the timing; of encoded samples they hold what decoding all of them beforehand gives.
 * Images of coming batches are decoded on libuv's threads while earlier ones are waited for. Batches of a stream follow
 * from its shards, the seed and the number of its lanes (see `Lane`): so many ranks, or one, see the same samples.
 * Close it when done, else its worker waits for ever.
 */
export class Prefetcher {
  private readonly thread: BatchThread;
  private readonly steps: number;
  private readonly isKept: boolean;
  private readonly numShards: number | undefined;
  private at: DataPosition;

  /** @throws ArgumentError where the lanes that are to go on do not share a batch out. */
  constructor(
    samples: TrainingSamples,
    { slots = 4, augmentation, damaged = () => undefined, lanes, ...options }: PrefetchOptions,
  ) {
    this.steps = stepsPerEpoch(samples.count, options.batchSize);
    this.at = options.position ?? { epoch: 0, step: 0 };
    this.isKept = !isStreamed(samples) && isEncoded(samples) && samples.images.cache.capacity > 0;
    this.numShards = isStreamed(samples) ? samples.stream.shards.length : undefined;
    const how = { slots, damaged };
    if (isStreamed(samples)) {
      const numLanes = lanes?.length ?? numLanesOf(samples.stream, options);
      if (options.batchSize % numLanes !== 0)
        throw new ArgumentError(
          `a batch of ${options.batchSize} samples does not divide among the ${numLanes} lanes of the stream; use a multiple of ${numLanes}`,
        );
      const range = shardRange(options.batchSize, options);
      const parts = lanePartsOf(range, options.batchSize / numLanes, numLanes);
      const placed = lanes && parts.map(({ lane }) => ({ lane, position: lanes[lane]! }));
      const order = { of: "stream", ...options, numLanes, lanes: placed, augmentation } as const;
      this.thread = new BatchThread({ samples, order }, how, parts.length);
    } else this.thread = new BatchThread({ samples, order: { of: "training", augmentation, ...options } }, how);
  }

  /**
   * Wait until so many batches to come are prepared.
   *
   * @param count of at most one less than there are slots.
   * @returns why they never will be, where one of them cannot be had; `next` gives those before it, and then throws it.
   */
  ahead(count: number): Promise<Error | undefined> {
    return this.thread.ahead(count);
  }

  /**
   * The next batch; waits when the worker is behind. The batch given out before becomes invalid.
   *
   * @throws DataError where a sample of this batch cannot be had.
   */
  async next(): Promise<Prefetched> {
    const { batch, keptImages, lanes } = await this.thread.next();
    const position = this.at;
    this.at = advance(position, this.steps);
    if (this.numShards === undefined) return { batch, position, ...(this.isKept && { keptImages }) };
    const epoch = Math.min(...lanes.map(({ position: { shard } }) => Math.floor(shard / this.numShards!)));
    return { batch, position: { ...position, epoch }, lanes };
  }

  /** End the worker, whatever it does. Resolves once images that are being decoded are done. */
  close(): Promise<void> {
    return this.thread.close();
  }
}
