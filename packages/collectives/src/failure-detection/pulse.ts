/** Interval at which a thread signals that its event loop is running. */
const beatMilliseconds = 200;

/** Heartbeat that shows another thread that the event loop of this thread is running. */
export interface Pulse {
  /** Shared counter of beats, read by `pulseReader` in the other thread. */
  readonly beats: Int32Array<SharedArrayBuffer>;
  stop(): void;
}

/** Starts the heartbeat of this thread. Does not keep the process alive. */
export const openPulse = (): Pulse => {
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const timer = setInterval(() => void Atomics.add(beats, 0, 1), beatMilliseconds).unref();
  return { beats, stop: () => clearInterval(timer) };
};

/**
 * Returns a function that measures the time since the last beat, in milliseconds.
 *
 * The time between two calls counts as at most `longestGapMilliseconds`. A longer gap means that this thread was
 * stopped, and the other thread may have been stopped at the same time.
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
