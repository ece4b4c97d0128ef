/** A clock with timers, passed as an argument so that tests can control time. */
export interface Clock {
  /** Returns the milliseconds since an arbitrary start; never decreases. */
  now(): number;
  /** Calls `call` one time after `milliseconds`. Returns a function that cancels the call. */
  after(milliseconds: number, call: () => void): () => void;
}

/** Clock of the system, with a resolution of about one millisecond. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after: (milliseconds, call) => {
    const timer: unknown = setTimeout(call, milliseconds);
    // In browsers a timer is a number and has no `unref`.
    if (typeof timer === "object" && timer !== null && "unref" in timer) (timer as { unref(): void }).unref();
    return () => clearTimeout(timer as number);
  },
};
