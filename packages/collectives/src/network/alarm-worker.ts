import { workerData } from "node:worker_threads";
import { bellAt, dueAt, rungAt } from "./alarm.ts";

// Entry of the thread that wakes a `FineClock`: it sleeps until the time it was last told, rings once, and sleeps until it is told again.

const words = workerData as Int32Array;
const microsecondsUntil = (due: number): number => (due - Math.round((performance.timeOrigin + performance.now()) * 1000)) | 0;

let rung = 0;
for (;;) {
  const seen = Atomics.load(words, bellAt);
  if (seen === rung) {
    Atomics.wait(words, bellAt, seen);
    continue;
  }
  const left = microsecondsUntil(Atomics.load(words, dueAt));
  if (left > 0 && Atomics.wait(words, bellAt, seen, left / 1000) !== "timed-out") continue;
  rung = seen;
  Atomics.add(words, rungAt, 1);
  Atomics.notify(words, rungAt);
}
