import { type Summary, summarize } from "./statistics.ts";

/**
 * Timing of a call, in milliseconds per call: median, median absolute deviation and minimum (`best`), and the number of
 * timing samples.
 */
export interface Measurement extends Summary {
  readonly best: number;
}

export interface MeasureOptions {
  /** Number of timing samples. Default: 21. */
  readonly samples?: number;
  /** Target duration of a timing sample in ms. A sample consists of as many calls as fit in this time. Default: 10. */
  readonly sampleMilliseconds?: number;
  /** Returns the current time in ms from an arbitrary origin. Default: `performance.now`. */
  readonly clock?: () => number;
}

// Maximum number of calls per sample. The time of shorter calls would be hidden by the loop overhead. The limit also
// protects against a clock that does not advance.
const maxCalls = 1e6;

/**
 * Times a call after warm-up. If a call returns a promise, the promise is awaited before the next call begins.
 *
 * No library is used. In tinybench 6.2 a sample is one call, unless the call itself times a batch, as this loop does.
 * mitata 1.0 takes 4096 calls per sample for calls below 65 µs and one call otherwise, and first allocates a GiB if the
 * garbage collector is not exposed.
 *
 * Cost: at least five warm-up calls, then `samples` samples of about `sampleMilliseconds` each, with at least one call
 * per sample.
 * @example const { median, mad } = await measure(() => sort(values));
 */
export const measure = async (call: () => unknown, options: MeasureOptions = {}): Promise<Measurement> => {
  const { samples = 21, sampleMilliseconds = 10, clock = () => performance.now() } = options;
  const sample = async (calls: number): Promise<number> => {
    const begin = clock();
    for (let i = 0; i < calls; i++) {
      const pending = call();
      if (pending instanceof Promise) await pending;
    }
    return (clock() - begin) / calls;
  };
  await sample(2);
  const calls = Math.min(maxCalls, Math.max(1, Math.round(sampleMilliseconds / (await sample(2)))));
  await sample(calls); // V8 compiles hot functions in the background; let it finish
  const times: number[] = [];
  for (let i = 0; i < samples; i++) times.push(await sample(calls));
  return { ...summarize(times), best: Math.min(...times) };
};
