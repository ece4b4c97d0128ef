import { type EvaluationBatch, evaluationBatches, evaluationIndices, type EvaluationOptions } from "../batches.ts";
import { isEncoded, isFileWindows, type Samples } from "../encoded-records.ts";
import { BatchThread } from "./batch-thread.ts";
import type { PrefetchOptions } from "./prefetch.ts";

export interface EvaluationReaderOptions extends EvaluationOptions, Pick<PrefetchOptions, "damaged"> {}

/**
 * Reads evaluation batches for repeated evaluations of a run, including batches of encoded samples. A worker thread
 * assembles the batches. The thread starts with the first evaluation and is reused. The thread reads ahead only during
 * an evaluation, so each evaluation uses the current contents of the files. Call `close` after the last evaluation;
 * otherwise the worker thread never ends.
 */
export class EvaluationReader {
  private readonly samples: Samples;
  private readonly options: EvaluationReaderOptions;
  /** Idle worker thread, to be reused by the next evaluation. Undefined: no idle thread. */
  private idle: BatchThread | undefined;
  private isClosed = false;

  constructor(samples: Samples, options: EvaluationReaderOptions) {
    this.samples = samples;
    this.options = options;
  }

  /**
   * Yields all batches of `evaluationBatches`. Arrays of a batch are valid until the next batch is requested. If the
   * caller stops early or a batch fails, the thread ends, and the next evaluation starts a new thread.
   *
   * @throws DataError if an image of a batch cannot be read.
   */
  async *batches(): AsyncGenerator<EvaluationBatch, void> {
    const { samples, options } = this;
    if (!isEncoded(samples) && !isFileWindows(samples)) {
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

  /** Ends the idle worker thread. A thread in use ends after its evaluation. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.idle?.close();
    this.idle = undefined;
  }
}

/**
 * Yields the batches of an `EvaluationReader` for a single evaluation.
 *
 * @throws DataError if an image of a batch cannot be read.
 * @example
 * ```ts
 * const records = arrayRecords({ inputs: NdArray.from([1, 2, 3], [3, 1]) });
 * let numBatches = 0;
 * for await (const _ of readEvaluationBatches(records, { batchSize: 2, rank: 0, worldSize: 1 })) numBatches += 1;
 * console.log(numBatches); // 2
 * ```
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
