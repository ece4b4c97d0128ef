/** Time as an argument, so that tests can turn it. */
export interface Clock {
  /** Milliseconds since some beginning; never goes back. */
  now(): number;
  /** Call once, `milliseconds` from now. Returns what takes the call back. */
  after(milliseconds: number, call: () => void): () => void;
}

/** Real time, in steps of about a millisecond. Its timers keep no process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after: (milliseconds, call) => {
    const timer: unknown = setTimeout(call, milliseconds);
    // a number in browsers
    if (typeof timer === "object" && timer !== null && "unref" in timer) (timer as { unref(): void }).unref();
    return () => clearTimeout(timer as number);
  },
};
