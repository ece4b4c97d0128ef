import { workerData } from "node:worker_threads";
import { trainingBatches, type TrainingOptions } from "../batches.ts";
import { type Records, writeBatch } from "../records.ts";
import { controlWord, type Slots, slotOf } from "./prefetch-slots.ts";

const { records, options, slots } = workerData as {
  readonly records: Records;
  readonly options: TrainingOptions;
  readonly slots: Slots;
};
const { control } = slots;

let batch = 0;
for (const { indices } of trainingBatches(records.count, options)) {
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
  writeBatch(records, indices, slotOf(slots, batch));
  batch++;
  Atomics.store(control, controlWord.produced, batch);
  Atomics.notify(control, controlWord.produced);
}
