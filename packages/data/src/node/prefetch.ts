import type { Augmentation } from "../augment.ts";
import {
  type EvaluationBatch,
  evaluationBatches,
  evaluationIndices,
  type EvaluationOptions,
  type TrainingOptions,
} from "../batches.ts";
import { isEncoded, type Samples } from "../encoded-records.ts";
import { advance, type DataPosition, stepsPerEpoch } from "../order.ts";
import type { Batch } from "../records.ts";
import { BatchThread } from "./batch-thread.ts";
import type { DamagedImage } from "./image-reader.ts";

export interface PrefetchOptions extends TrainingOptions {
  /** Batches that may wait ahead of the trainer. Default: 4. */
  readonly slots?: number;
  /** How images, the field `inputs`, change from epoch to epoch. Default: not at all. */
  readonly augmentation?: Augmentation | undefined;
  /**
   * Is told of images that cannot be decoded and that others take the place of; each once, by the first of all threads
   * of a process that finds it. Default: nobody is.
   */
  readonly damaged?: ((image: DamagedImage) => void) | undefined;
}

/** A batch that a worker has prepared, and where in the data the next one begins. */
export interface Prefetched {
  /** Arrays over the slot: valid until the next call of `next`. */
  readonly batch: Batch;
  readonly position: DataPosition;
  /** Where decoded images are kept: how many of the batch were. */
  readonly keptImages?: number;
}

/**
 * Assembles training batches in a worker thread, ahead of the trainer, in shared memory. The batches are those of
 * `trainingBatches`, whatever the timing; of encoded samples they hold what decoding all of them beforehand gives.
 * Images of coming batches are decoded on libuv's threads while earlier ones are waited for. Close it when done, else
 * its worker waits for ever.
 */
export class Prefetcher {
  private readonly thread: BatchThread;
  private readonly steps: number;
  private readonly isKept: boolean;
  private at: DataPosition;

  constructor(samples: Samples, { slots = 4, augmentation, damaged, ...options }: PrefetchOptions) {
    this.steps = stepsPerEpoch(samples.count, options.batchSize);
    this.at = options.position ?? { epoch: 0, step: 0 };
    this.isKept = isEncoded(samples) && samples.images.cache.capacity > 0;
    this.thread = new BatchThread(
      samples,
      { of: "training", augmentation, ...options },
      { slots, damaged: damaged ?? (() => undefined) },
    );
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
   * @throws DataError where an image of this batch cannot be had.
   */
  async next(): Promise<Prefetched> {
    const { batch, keptImages } = await this.thread.next();
    const position = this.at;
    this.at = advance(position, this.steps);
    return { batch, position, ...(this.isKept && { keptImages }) };
  }

  /** End the worker, whatever it does. Resolves once images that are being decoded are done. */
  close(): Promise<void> {
    return this.thread.close();
  }
}

/**
 * The batches of `evaluationBatches`, of encoded samples, too: a worker thread assembles these. Arrays of a batch are
 * valid until the next one is asked for.
 *
 * @param damaged see `PrefetchOptions`.
 * @throws DataError where an image of a batch cannot be had.
 */
export async function* readEvaluationBatches(
  samples: Samples,
  { damaged, ...options }: EvaluationOptions & Pick<PrefetchOptions, "damaged">,
): AsyncGenerator<EvaluationBatch, void> {
  if (!isEncoded(samples)) {
    yield* evaluationBatches(samples, options);
    return;
  }
  const thread = new BatchThread(
    samples,
    { of: "evaluation", ...options },
    { slots: 3, damaged: damaged ?? (() => undefined) },
  );
  try {
    for (const { mask, validCount } of evaluationIndices(samples.count, options))
      yield { batch: (await thread.next()).batch, mask, validCount };
  } finally {
    await thread.close();
  }
}
