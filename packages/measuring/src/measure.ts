import { type Summary, summarize } from "./statistics.ts";

/** Milliseconds of one call: median, spread, number of samples, and the fastest sample. */
export interface Measurement extends Summary {
  readonly best: number;
}

export interface MeasureOptions {
  /** Default: 21. */
  readonly samples?: number;
  /** About how long a sample lasts; it is filled with as many calls as that takes. Default: 10. */
  readonly sampleMilliseconds?: number;
  /** Milliseconds since some beginning. Default: `performance.now`. */
  readonly clock?: () => number;
}

// A call shorter than this many of a sample is lost in the loop around it anyway; also the guard against a clock that
// stands still.
const maxCalls = 1e6;

/**
 * Time a call after warming it up. A call that returns a promise is awaited before the next one begins.
 *
 * Own code: of tinybench 6.2 a sample is one call, unless the call counts and times a batch itself, which is this
 * loop; mitata 1.0 takes 4096 calls for a sample of whatever is below 65 µs, else one, and allocates a GiB before it
 * begins where no collector is exposed.
 *
 * Cost: five calls or more to warm up, then `samples` times as many calls as fill `sampleMilliseconds`, one at least.
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
