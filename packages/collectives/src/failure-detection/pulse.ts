/** Interval at which a thread signals that its event loop turns. */
const beatMilliseconds = 200;

/** Signals to another thread that the event loop of this thread turns. */
export interface Pulse {
  /** Counter of beats, for `pulseReader` in the other thread. */
  readonly beats: Int32Array<SharedArrayBuffer>;
  stop(): void;
}

/** Begins to signal. Does not keep the process alive. */
export const openPulse = (): Pulse => {
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const timer = setInterval(() => void Atomics.add(beats, 0, 1), beatMilliseconds).unref();
  return { beats, stop: () => clearInterval(timer) };
};

/**
 * Returns a function that returns the milliseconds for which a thread has signaled no beat.
 *
 * Only time between calls at most `longestGapMilliseconds` apart counts, because while this thread was stopped, the
 * other thread may have been stopped too.
 */
export const pulseReader = (
  beats: Int32Array,
  longestGapMilliseconds: number,
  now: () => number = () => performance.now(),
): (() => number) => {
  let seen = Atomics.load(beats, 0);
  let read = now();
  let idle = 0;
  return () => {
    const time = now();
    const beat = Atomics.load(beats, 0);
    idle = beat === seen ? idle + Math.min(time - read, longestGapMilliseconds) : 0;
    seen = beat;
    read = time;
    return idle;
  };
};
