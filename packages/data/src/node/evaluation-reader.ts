import { type EvaluationBatch, evaluationBatches, evaluationIndices, type EvaluationOptions } from "../batches.ts";
import { isEncoded, isFiled, type Samples } from "../encoded-records.ts";
import { BatchThread } from "./batch-thread.ts";
import type { PrefetchOptions } from "./prefetch.ts";

export interface EvaluationReaderOptions extends EvaluationOptions, Pick<PrefetchOptions, "damaged"> {}

/**
 * Reads batches of evaluation, of encoded samples, too, as often as a run is judged: a worker thread assembles these,
 * begun with the first of them and kept for the next time. It reads nothing while nobody wants a batch, so each time
 * samples are those that are there then. Close it when done, else its worker waits for ever.
 */
export class EvaluationReader {
  private readonly samples: Samples;
  private readonly options: EvaluationReaderOptions;
  /** Nobody reads from it. */
  private idle: BatchThread | undefined;
  private isClosed = false;

  constructor(samples: Samples, options: EvaluationReaderOptions) {
    this.samples = samples;
    this.options = options;
  }

  /**
   * All batches, those of `evaluationBatches`. Arrays of a batch are valid until the next one is asked for. Where they
   * are not read to their end, or one cannot be had, the thread ends, and the next time begins with another.
   *
   * @throws DataError where an image of a batch cannot be had.
   */
  async *batches(): AsyncGenerator<EvaluationBatch, void> {
    const { samples, options } = this;
    if (!isEncoded(samples) && !isFiled(samples)) {
      yield* evaluationBatches(samples, options);
      return;
    }
    const { damaged = () => undefined, ...order } = options;
    const thread =
      this.idle ?? new BatchThread({ samples, order: { of: "evaluation", ...order } }, { slots: 3, damaged });
    this.idle = undefined;
    let isWhole = false;
    try {
      thread.beginEvaluation();
      for (const { mask, validCount } of evaluationIndices(samples.count, order))
        yield { batch: (await thread.next()).batch, mask, validCount };
      isWhole = true;
    } finally {
      if (isWhole && !this.isClosed && this.idle === undefined) this.idle = thread;
      else await thread.close();
    }
  }

  /** End the thread; one that is read from ends with those batches. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.idle?.close();
    this.idle = undefined;
  }
}

/**
 * The batches of an `EvaluationReader`, for who judges once.
 *
 * @throws DataError where an image of a batch cannot be had.
 */
export async function* readEvaluationBatches(
  samples: Samples,
  options: EvaluationReaderOptions,
): AsyncGenerator<EvaluationBatch, void> {
  const reader = new EvaluationReader(samples, options);
  try {
    yield* reader.batches();
  } finally {
    await reader.close();
  }
}
