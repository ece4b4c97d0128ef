import { workerData } from "node:worker_threads";
import { armedAt, dueAt, firedAt } from "./alarm.ts";

// Entry point of the thread that wakes a `FineClock`. The thread sleeps until the last set time, fires one time, and
// sleeps until a new time is set.

const words = workerData as Int32Array;
const microsecondsUntil = (due: number): number =>
  (due - Math.round((performance.timeOrigin + performance.now()) * 1000)) | 0;

let fired = 0;
for (;;) {
  const seen = Atomics.load(words, armedAt);
  if (seen === fired) {
    Atomics.wait(words, armedAt, seen);
    continue;
  }
  const left = microsecondsUntil(Atomics.load(words, dueAt));
  if (left > 0 && Atomics.wait(words, armedAt, seen, left / 1000) !== "timed-out") continue;
  fired = seen;
  Atomics.add(words, firedAt, 1);
  Atomics.notify(words, firedAt);
}
