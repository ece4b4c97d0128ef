import { startThread } from "../start-thread.ts";
import { alarmWords, armedAt, dueAt, firedAt } from "./alarm.ts";
import type { Clock } from "../clock.ts";

/** A clock with its own thread, which runs until the clock is closed. */
export interface FineClock extends Clock {
  /** Cancels all timers and stops the thread. */
  close(): Promise<void>;
}

/**
 * Milliseconds by which the alarm is set before a call is due, because the alarm usually fires this much too late. The
 * event loop polls for the remaining time.
 */
const earlyMilliseconds = 0.12;
/**
 * Maximum duration of an alarm, because alarm times are 32-bit numbers of microseconds. For a call that is due later,
 * the alarm is set again.
 */
const longestMilliseconds = 600_000;

interface Timer {
  readonly due: number;
  readonly call: () => void;
}

/**
 * Opens a real-time clock with a resolution of about 0.1 ms, for emulated links. Timers of Node fire up to 1 ms late. A
 * thread that sleeps on an atomic wakes within the kernel's timer slack, and takes no core from compute threads.
 */
export const openFineClock = (): FineClock => {
  const words = new Int32Array(new SharedArrayBuffer(alarmWords * Int32Array.BYTES_PER_ELEMENT));
  const alarm = startThread(() => new URL("./alarm-worker.ts", import.meta.url), { workerData: words, name: "alarm" });
  alarm.unref();
  const timers: Timer[] = []; // Sorted by time. There are only as many timers as lines, so no heap is needed.
  let closed = false;
  let turning = false;
  let setFor = Infinity;

  const set = (due: number): void => {
    if (due >= setFor) return; // The alarm fires earlier and is set again then.
    setFor = due;
    const milliseconds = Math.min(due - earlyMilliseconds - performance.now(), longestMilliseconds);
    Atomics.store(words, dueAt, Math.round((performance.timeOrigin + performance.now() + milliseconds) * 1000) | 0);
    Atomics.add(words, armedAt, 1);
    Atomics.notify(words, armedAt);
  };
  const arm = (): void => {
    const first = timers[0];
    if (first === undefined || turning || closed) return;
    if (first.due - performance.now() > earlyMilliseconds) return set(first.due);
    turning = true;
    setImmediate(() => {
      turning = false;
      fire();
    });
  };
  const fire = (): void => {
    const now = performance.now();
    while (timers.length > 0 && timers[0]!.due <= now) timers.shift()!.call();
    arm();
  };
  const listen = async (seen: number): Promise<void> => {
    const { async, value } = Atomics.waitAsync(words, firedAt, seen);
    if (async) await value;
    if (closed) return;
    void listen(Atomics.load(words, firedAt)); // Before `fire`, which may set an alarm that fires immediately.
    setFor = Infinity;
    fire();
  };
  void listen(0);

  return {
    now: () => performance.now(),
    after: (milliseconds, call) => {
      if (closed) return () => undefined;
      const timer: Timer = { due: performance.now() + milliseconds, call };
      const at = timers.findLastIndex(({ due }) => due <= timer.due);
      timers.splice(at + 1, 0, timer);
      arm();
      return () => {
        const index = timers.indexOf(timer);
        if (index >= 0) timers.splice(index, 1);
      };
    },
    close: async () => {
      closed = true;
      timers.length = 0;
      Atomics.add(words, firedAt, 1);
      Atomics.notify(words, firedAt);
      await alarm.terminate();
    },
  };
};
