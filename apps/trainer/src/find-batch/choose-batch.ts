/** A trial of a batch size. */
export interface BatchTrial {
  readonly batch: number;
  /** Planned memory of all ranks on this machine, in bytes. */
  readonly plannedBytes: number;
  /** Measured seconds per sample. Absent: no steps were timed. */
  readonly secondsPerSample?: number;
  /** Reason why no step was run, or the steps did not finish. Absent: the steps were run. */
  readonly refused?: string;
}

/** Minimum fraction of the time per sample that a larger batch must save. */
export const minGain = 0.05;

/** Maximum batch size of a job. Used for streams, whose number of samples is unknown. */
const maxSamples = 2 ** 31 - 1;

/** Returns `unit` and its doublings up to `most`: batch sizes that divide equally among all ranks. */
export const batchesUpTo = (unit: number, most: number): number[] => {
  const batches: number[] = [];
  for (let batch = unit; batch <= Math.min(most, maxSamples); batch *= 2) batches.push(batch);
  return batches;
};

const timesOf = (tries: readonly BatchTrial[]): (readonly [batch: BatchTrial, seconds: number])[] =>
  tries.flatMap((one) => (one.secondsPerSample === undefined ? [] : [[one, one.secondsPerSample] as const]));

/**
 * Returns the smallest measured batch size such that no other batch size saves more than `minGain` of the time per
 * sample.
 *
 * @returns undefined if no batch size was measured.
 */
export const chooseBatch = (tries: readonly BatchTrial[]): BatchTrial | undefined => {
  const times = timesOf(tries);
  const least = Math.min(...times.map(([, seconds]) => seconds));
  return times
    .toSorted(([one], [other]) => one.batch - other.batch)
    .find(([, seconds]) => seconds * (1 - minGain) <= least)?.[0];
};

/**
 * Whether neither of the last two doublings saved time, so that the search ends. A single slow doubling may be an
 * outlier.
 */
export const isOver = (tries: readonly BatchTrial[]): boolean => {
  const times = timesOf(tries).map(([, seconds]) => seconds);
  return times.length > 2 && Math.min(...times.slice(-2)) > Math.min(...times.slice(0, -2)) * (1 - minGain);
};
