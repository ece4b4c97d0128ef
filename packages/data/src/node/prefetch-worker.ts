import { parentPort, workerData } from "node:worker_threads";
import type { Augmentation } from "../augment.ts";
import { evaluationIndices, type EvaluationOptions, trainingBatches, type TrainingOptions } from "../batches.ts";
import type { Samples } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import { batchFiller, type Shown } from "./batch-filler.ts";
import type { DamagedImage } from "./image-reader.ts";
import { controlWord, type Slots, slotOf } from "./prefetch-slots.ts";

/** Which samples the batches of a thread hold. */
export type BatchOrder =
  | ({ readonly of: "training"; readonly augmentation: Augmentation | undefined } & TrainingOptions)
  | ({ readonly of: "evaluation" } & EvaluationOptions);

/** What a thread that assembles batches is started with. */
export interface PrefetchInput {
  readonly samples: Samples;
  readonly order: BatchOrder;
  readonly slots: Slots;
}

/** What it says; of samples that cannot be had it has produced all batches before. */
export type PrefetchMessage =
  | { readonly type: "damaged"; readonly image: DamagedImage }
  | { readonly type: "failed"; readonly message: string };

const { samples, order, slots } = workerData as PrefetchInput;
const { control } = slots;
const say = (message: PrefetchMessage): void => parentPort!.postMessage(message);
const fill = batchFiller(samples, (image) => say({ type: "damaged", image }));

function* batches(): Generator<{ readonly indices: Int32Array; readonly shown: Shown | undefined }, void> {
  if (order.of === "evaluation") {
    for (const { indices } of evaluationIndices(samples.count, order)) yield { indices, shown: undefined };
    return;
  }
  const { augmentation, seed } = order;
  for (const { indices, position } of trainingBatches(samples.count, order))
    yield { indices, shown: augmentation && { augmentation, seed, epoch: position.epoch } };
}

/** Batches that were begun and are not produced. */
let inWork = 0;
/** Resolves once there are none. */
let produced = Promise.resolve();

/**
 * Back-pressure: no slot is overwritten before the trainer has given it back. @returns false where none comes any more.
 */
const hasSlot = async (batch: number): Promise<boolean> => {
  for (;;) {
    const consumed = Atomics.load(control, controlWord.consumed);
    if (Atomics.load(control, controlWord.closed) === 1) return false;
    if (batch - consumed < slots.count) return true;
    // While images are decoded this thread must hear of them, and they keep it alive; else nothing does but to block.
    if (inWork > 0) await Promise.race([Atomics.waitAsync(control, controlWord.consumed, consumed).value, produced]);
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
  let batch = 0;
  for (const { indices, shown } of batches()) {
    if (!(await hasSlot(batch))) break;
    inWork++;
    const filled = fill(indices, slotOf(slots, batch), shown);
    filled.catch(() => undefined); // told at its own batch, by `produced`
    produced = produce(batch, produced, filled);
    produced.catch(() => undefined);
    batch++;
  }
  await produced;
} catch (error) {
  if (!(error instanceof DataError)) throw error;
  say({ type: "failed", message: error.message });
}
