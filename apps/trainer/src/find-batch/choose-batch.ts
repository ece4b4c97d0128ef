/** A trial of a batch size. */
export interface BatchTrial {
  readonly batch: number;
  /** Planned memory of all ranks on this machine, in bytes. */
  readonly plannedBytes: number;
  /** Measured seconds per sample. Absent: no steps were timed. */
  readonly secondsPerSample?: number;
  /** Reason why no step was run, or why the steps did not finish. Absent: all steps of the trial were run. */
  readonly refused?: string;
}

/** Minimum relative reduction of the time per sample that justifies a larger batch size. */
export const minGain = 0.05;

/** Maximum batch size of a job. Used as a limit for streams, whose number of samples is unknown. */
const maxSamples = 2 ** 31 - 1;

/**
 * Returns the batch sizes that a search may try: `unit`, and its repeated doublings up to `most`. These batch sizes are
 * multiples of `unit`, so that ranks get equal shares.
 */
export const batchesUpTo = (unit: number, most: number): number[] => {
  const batches: number[] = [];
  for (let batch = unit; batch <= Math.min(most, maxSamples); batch *= 2) batches.push(batch);
  return batches;
};

const timesOf = (tries: readonly BatchTrial[]): (readonly [batch: BatchTrial, seconds: number])[] =>
  tries.flatMap((one) => (one.secondsPerSample === undefined ? [] : [[one, one.secondsPerSample] as const]));

/**
 * Returns the smallest measured batch size for which no other batch size saves more than `minGain` of the time per
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
 * Whether the search should end, because neither of the last two doublings of the batch size has reduced the time per
 * sample by at least `minGain`. A single slow doubling does not end the search, because it may be an outlier.
 */
export const isOver = (tries: readonly BatchTrial[]): boolean => {
  const times = timesOf(tries).map(([, seconds]) => seconds);
  return times.length > 2 && Math.min(...times.slice(-2)) > Math.min(...times.slice(0, -2)) * (1 - minGain);
};
