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
import { closeUnpackers } from "./streams/piecewise.ts";
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

/** Which samples the batches of a thread hold. */
export type BatchOrder =
  | { readonly samples: Samples; readonly order: TrainingOrder | EvaluationOrder }
  | { readonly samples: StreamedRecords; readonly order: StreamOrder };

/** What a thread that assembles batches is started with. */
export type PrefetchInput = BatchOrder & { readonly slots: Slots };

/** What it says; of samples that cannot be had it has produced all batches before. */
export type PrefetchMessage =
  | { readonly type: "damaged"; readonly image: DamagedImage }
  | { readonly type: "failed"; readonly message: string }
  /** No batch comes any more, and the thread may be ended. */
  | { readonly type: "over" };

const input = workerData as PrefetchInput;
const { slots } = input;
const { control } = slots;
const say = (message: PrefetchMessage): void => parentPort!.postMessage(message);

/** Writes a batch into its slot; resolves with how many of its images were decoded before, and kept. */
type Filling = (batch: number) => Promise<number>;

/** Batches in their order, and what else is done meanwhile that this thread must hear of. */
interface Batches {
  readonly fillings: Iterable<Filling> | AsyncIterable<Filling>;
  readonly reading?: () => Promise<unknown> | undefined;
}

const storedBatches = (samples: Samples, order: TrainingOrder | EvaluationOrder): Batches => {
  const fill = batchFiller(samples, (image) => say({ type: "damaged", image }));
  return { fillings: order.of === "evaluation" ? judged(samples, order, fill) : learnt(samples, order, fill) };
};

/** All batches for each message, and none before: by then samples may have changed, or be gone. */
async function* judged({ count }: Samples, order: EvaluationOrder, fill: BatchFiller): AsyncGenerator<Filling, void> {
  for await (const _ of on(parentPort!, "message")) {
    for (const { indices } of evaluationIndices(count, order))
      yield (batch) => fill(indices, slotOf(slots, batch), undefined);
    await produced; // nobody else hears of a fault while the next message is waited for
  }
}

function* learnt({ count }: Samples, order: TrainingOrder, fill: BatchFiller): Generator<Filling, void> {
  const { augmentation, seed } = order;
  for (const { indices, position } of trainingBatches(count, order)) {
    const shown = augmentation && { augmentation, seed, epoch: position.epoch };
    yield (batch) => fill(indices, slotOf(slots, batch), shown);
  }
}

const streamedBatches = (samples: StreamedRecords, order: StreamOrder): Batches => {
  const filler = streamFiller(samples, { ...order, damaged: (image) => say({ type: "damaged", image }) });
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

/** Batches that were begun and are not produced. */
let inWork = 0;
/** Resolves once there are none. */
let produced = Promise.resolve();

/**
 * Back-pressure: no slot is overwritten before the trainer has given it back. @returns false where none comes any more.
 */
const hasSlot = async (batch: number, reading: Batches["reading"]): Promise<boolean> => {
  for (;;) {
    const consumed = Atomics.load(control, controlWord.consumed);
    if (Atomics.load(control, controlWord.closed) === 1) return false;
    if (batch - consumed < slots.count) return true;
    // While images are decoded, or shards read, this thread must hear of them, and they keep it alive; else nothing
    // does but to block.
    const under = [inWork > 0 ? produced : undefined, reading?.()].filter((work) => work !== undefined);
    if (under.length > 0)
      await Promise.race([Atomics.waitAsync(control, controlWord.consumed, consumed).value, ...under]);
    else Atomics.wait(control, controlWord.consumed, consumed);
  }
};

/** Batches are produced in their order, whichever is filled first. */
const produce = async (batch: number, before: Promise<void>, filled: Promise<number>): Promise<void> => {
  await before;
  slots.kept[batch % slots.count] = await filled;
  Atomics.store(control, controlWord.produced, batch + 1);
  Atomics.notify(control, controlWord.produced);
  inWork--;
};

try {
  const { fillings, reading } = batchesOf();
  let batch = 0;
  for await (const filling of fillings) {
    if (!(await hasSlot(batch, reading))) break;
    inWork++;
    const filled = filling(batch);
    filled.catch(() => undefined); // told at its own batch, by `produced`
    produced = produce(batch, produced, filled);
    produced.catch(() => undefined);
    batch++;
  }
  if (Atomics.load(control, controlWord.closed) === 0) await produced;
} catch (error) {
  if (!(error instanceof DataError)) throw error;
  say({ type: "failed", message: error.message });
} finally {
  closeUnpackers();
  say({ type: "over" });
}
