import { on } from "node:events";
import { parentPort, workerData } from "node:worker_threads";
import type { Augmentation } from "../augment.ts";
import { evaluationIndices, type EvaluationOptions, trainingBatches, type TrainingOptions } from "../batches.ts";
import type { Samples } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import type { StreamedRecords } from "../streams/streamed-records.ts";
import { type BatchFiller, batchFiller } from "./batch-filler.ts";
import type { DamagedImage } from "./image-reader.ts";
import { controlWord, type Slots, slotOf, writeLanes } from "./prefetch-slots.ts";
import { closeDecompressors } from "./streams/piecewise.ts";
import { streamFiller, type StreamFillerOptions } from "./streams/stream-filler.ts";

interface TrainingOrder extends TrainingOptions {
  readonly of: "training";
  readonly augmentation: Augmentation | undefined;
}

interface EvaluationOrder extends EvaluationOptions {
  readonly of: "evaluation";
}

interface StreamOrder extends Omit<StreamFillerOptions, "damaged"> {
  readonly of: "stream";
}

/** Samples and order of the batches that a thread assembles. */
export type BatchOrder =
  | { readonly samples: Samples; readonly order: TrainingOrder | EvaluationOrder }
  | { readonly samples: StreamedRecords; readonly order: StreamOrder };

/** Input of the thread that assembles batches. */
export type PrefetchInput = BatchOrder & { readonly slots: Slots };

/**
 * Messages sent by the thread. Before it sends `failed` for an unreadable sample, the thread has produced all earlier
 * batches.
 */
export type PrefetchMessage =
  | { readonly type: "damaged"; readonly image: DamagedImage }
  | { readonly type: "failed"; readonly message: string }
  /** Message that no further batch will be produced, so that the thread may be terminated. */
  | { readonly type: "over" };

const input = workerData as PrefetchInput;
const { slots } = input;
const { control } = slots;
const post = (message: PrefetchMessage): void => parentPort!.postMessage(message);

/** Writes a batch into its slot of the ring buffer. Resolves with the number of its images that came from the cache. */
type Filling = (batch: number) => Promise<number>;

/**
 * Batches that the worker thread must produce, in order. For a stream, `reading` returns the pending read, for which
 * the thread must also wait.
 */
interface Batches {
  readonly fillings: Iterable<Filling> | AsyncIterable<Filling>;
  readonly reading?: () => Promise<unknown> | undefined;
}

const storedBatches = (samples: Samples, order: TrainingOrder | EvaluationOrder): Batches => {
  const fill = batchFiller(samples, (image) => post({ type: "damaged", image }));
  return {
    fillings:
      order.of === "evaluation" ? evaluationFillings(samples, order, fill) : trainingFillings(samples, order, fill),
  };
};

/**
 * Waits for messages, and yields all evaluation batches after each message. No sample is read before the message,
 * because the files may change between evaluations.
 */
async function* evaluationFillings(
  { count }: Samples,
  order: EvaluationOrder,
  fill: BatchFiller,
): AsyncGenerator<Filling, void> {
  for await (const _ of on(parentPort!, "message")) {
    for (const { indices } of evaluationIndices(count, order))
      yield (batch) => fill(indices, slotOf(slots, batch), undefined);
    await produced; // reports a failure before waiting for the next message
  }
}

function* trainingFillings({ count }: Samples, order: TrainingOrder, fill: BatchFiller): Generator<Filling, void> {
  const { augmentation, seed } = order;
  for (const { indices, position } of trainingBatches(count, order)) {
    const epochAugmentation = augmentation && { augmentation, seed, epoch: position.epoch };
    yield (batch) => fill(indices, slotOf(slots, batch), epochAugmentation);
  }
}

const streamedBatches = (samples: StreamedRecords, order: StreamOrder): Batches => {
  const filler = streamFiller(samples, { ...order, damaged: (image) => post({ type: "damaged", image }) });
  const filling: Filling = async (batch) => {
    writeLanes(slots, batch, await filler.fill(slotOf(slots, batch)));
    return 0;
  };
  function* fillings(): Generator<Filling, void> {
    for (;;) yield filling;
  }
  return { fillings: fillings(), reading: () => filler.reading };
};

const batchesOf = (): Batches =>
  input.order.of === "stream"
    ? streamedBatches(input.samples as StreamedRecords, input.order)
    : storedBatches(input.samples as Samples, input.order);

/** Number of batches that were started and are not yet produced. */
let numPending = 0;
/** Resolves when all started batches are produced. */
let produced = Promise.resolve();

/**
 * Waits for a free slot (back-pressure): no slot is overwritten before the trainer has released it.
 *
 * @returns false if the reader was closed.
 */
const hasSlot = async (batch: number, reading: Batches["reading"]): Promise<boolean> => {
  for (;;) {
    const consumed = Atomics.load(control, controlWord.consumed);
    if (Atomics.load(control, controlWord.closed) === 1) return false;
    if (batch - consumed < slots.count) return true;
    // While images are decoded or shards are read, this thread must keep its event loop running. The pending work keeps
    // the thread alive. Without pending work the thread must block.
    const under = [numPending > 0 ? produced : undefined, reading?.()].filter((work) => work !== undefined);
    if (under.length > 0)
      await Promise.race([Atomics.waitAsync(control, controlWord.consumed, consumed).value, ...under]);
    else Atomics.wait(control, controlWord.consumed, consumed);
  }
};

/**
 * Waits until a batch is filled and all earlier batches are marked as produced, then marks the batch as produced.
 * Batches may be filled out of order.
 */
const produce = async (batch: number, before: Promise<void>, filled: Promise<number>): Promise<void> => {
  await before;
  slots.cached[batch % slots.count] = await filled;
  Atomics.store(control, controlWord.produced, batch + 1);
  Atomics.notify(control, controlWord.produced);
  numPending--;
};

try {
  const { fillings, reading } = batchesOf();
  let batch = 0;
  for await (const filling of fillings) {
    if (!(await hasSlot(batch, reading))) break;
    numPending++;
    const filled = filling(batch);
    filled.catch(() => undefined); // `produced` reports the error with its batch
    produced = produce(batch, produced, filled);
    produced.catch(() => undefined);
    batch++;
  }
  if (Atomics.load(control, controlWord.closed) === 0) await produced;
} catch (error) {
  if (!(error instanceof DataError)) throw error;
  post({ type: "failed", message: error.message });
} finally {
  closeDecompressors();
  post({ type: "over" });
}
