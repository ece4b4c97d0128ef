import { workerData } from "node:worker_threads";
import { type Augmentation, augmentBatch } from "../augment.ts";
import { trainingBatches, type TrainingOptions } from "../batches.ts";
import { type Records, writeBatch } from "../records.ts";
import { controlWord, type Slots, slotOf } from "./prefetch-slots.ts";

const { records, options, augmentation, slots } = workerData as {
  readonly records: Records;
  readonly options: TrainingOptions;
  readonly augmentation: Augmentation | undefined;
  readonly slots: Slots;
};
const { control } = slots;

let batch = 0;
for (const { position, indices } of trainingBatches(records.count, options)) {
  // Back-pressure: no slot is overwritten before the trainer has given it back.
  for (
    let consumed = Atomics.load(control, controlWord.consumed);
    batch - consumed >= slots.count;
    consumed = Atomics.load(control, controlWord.consumed)
  ) {
    if (Atomics.load(control, controlWord.closed) === 1) break;
    Atomics.wait(control, controlWord.consumed, consumed);
  }
  if (Atomics.load(control, controlWord.closed) === 1) break;
  const slot = slotOf(slots, batch);
  writeBatch(records, indices, slot);
  if (augmentation !== undefined)
    augmentBatch(records, indices, slot, { augmentation, seed: options.seed, epoch: position.epoch });
  batch++;
  Atomics.store(control, controlWord.produced, batch);
  Atomics.notify(control, controlWord.produced);
}
