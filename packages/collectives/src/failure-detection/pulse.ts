/** How often a thread shows that it turns. */
const beatMilliseconds = 200;

/** Shows another thread that the event loop of this one turns. */
export interface Pulse {
  /** For `pulseReader` of the other thread. */
  readonly beats: Int32Array<SharedArrayBuffer>;
  stop(): void;
}

/** Begin to show it. Keeps no process alive. */
export const openPulse = (): Pulse => {
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const timer = setInterval(() => void Atomics.add(beats, 0, 1), beatMilliseconds).unref();
  return { beats, stop: () => clearInterval(timer) };
};

/**
 * For how many milliseconds a thread has shown no beat, as of this call.
 *
 * Only time between calls that followed each other within `longestGap` counts: while this thread was stopped too, the
 * other could not beat.
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
