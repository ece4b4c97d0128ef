/** What is known of training in batches of one size. */
export interface BatchTry {
  readonly batch: number;
  /** What all ranks of this machine would hold, as the step is planned. */
  readonly plannedBytes: number;
  /** Of real steps; absent where none was made. */
  readonly secondsPerSample?: number;
  /** Why no step was made, or none came to its end. */
  readonly refused?: string;
}

/** A larger batch must save so much of the time of a sample to be worth it. */
export const leastGain = 0.05;

/** Of a batch, as a job may say; of a stream there are more. */
const mostSamples = 2 ** 31 - 1;

/** `unit`, and its doubles up to `most`: what a batch may be that all ranks share alike. */
export const batchesUpTo = (unit: number, most: number): number[] => {
  const batches: number[] = [];
  for (let batch = unit; batch <= Math.min(most, mostSamples); batch *= 2) batches.push(batch);
  return batches;
};

const timesOf = (tries: readonly BatchTry[]): (readonly [batch: BatchTry, seconds: number])[] =>
  tries.flatMap((one) => (one.secondsPerSample === undefined ? [] : [[one, one.secondsPerSample] as const]));

/**
 * The smallest batch that was measured of which no other one's sample takes less time by more than `leastGain`:
 * beyond it nothing is gained, and below it something is lost.
 *
 * @returns nothing where none was measured.
 */
export const chooseBatch = (tries: readonly BatchTry[]): BatchTry | undefined => {
  const times = timesOf(tries);
  const least = Math.min(...times.map(([, seconds]) => seconds));
  return times
    .toSorted(([one], [other]) => one.batch - other.batch)
    .find(([, seconds]) => seconds * (1 - leastGain) <= least)?.[0];
};

/** Whether the last two doublings have both gained nothing, so that a third is not tried: one may be an accident. */
export const isOver = (tries: readonly BatchTry[]): boolean => {
  const times = timesOf(tries).map(([, seconds]) => seconds);
  return times.length > 2 && Math.min(...times.slice(-2)) > Math.min(...times.slice(0, -2)) * (1 - leastGain);
};
