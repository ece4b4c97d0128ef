import { startThread } from "../start-thread.ts";
import { alarmWords, armedAt, dueAt, firedAt } from "./alarm.ts";
import type { Clock } from "../clock.ts";

/** A clock that holds a thread until it is closed. */
export interface FineClock extends Clock {
  /** Nothing is called any more. */
  close(): Promise<void>;
}

/**
 * The alarm fires so much before a call is due, since it fires about so late; the rest is waited for by turning the
 * event loop.
 */
const earlyMilliseconds = 0.12;
/** An alarm set for later is set again: times of alarms are 32-bit numbers of microseconds. */
const longestMilliseconds = 600_000;

interface Timer {
  readonly due: number;
  readonly call: () => void;
}

/**
 * Open real time in steps of about 0.1 ms, for emulated links. Timers of Node fire up to 1 ms late; a thread that
 * sleeps on an atomic wakes within the slack of the kernel's timers, and takes no core that somebody computes on.
 */
export const openFineClock = (): FineClock => {
  const words = new Int32Array(new SharedArrayBuffer(alarmWords * Int32Array.BYTES_PER_ELEMENT));
  const alarm = startThread(() => new URL("./alarm-worker.ts", import.meta.url), { workerData: words, name: "alarm" });
  alarm.unref();
  const timers: Timer[] = []; // by time; as many as there are lines, so no heap
  let closed = false;
  let turning = false;
  let setFor = Infinity;

  const set = (due: number): void => {
    if (due >= setFor) return; // fires before, and is set again then
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
    void listen(Atomics.load(words, firedAt)); // before `fire`, which may set an alarm that fires while it runs
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
