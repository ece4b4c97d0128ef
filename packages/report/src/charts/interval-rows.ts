/** A time interval, in seconds. */
export interface Interval {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/**
 * Assigns intervals to the smallest number of rows such that intervals of a row do not overlap, in the order of their
 * start times.
 *
 * @returns the row of each interval, in the order of the input, and the number of rows.
 *
 * Cost: O(n log n + n · rows).
 */
export const rowsOfIntervals = (
  intervals: readonly Interval[],
): { readonly rows: readonly number[]; readonly count: number } => {
  const ends: number[] = [];
  const rows = intervals.map(() => 0);
  const order = intervals
    .map((_, index) => index)
    .sort((a, b) => intervals[a]!.startSeconds - intervals[b]!.startSeconds);
  for (const index of order) {
    const { startSeconds, endSeconds } = intervals[index]!;
    const free = ends.findIndex((end) => end <= startSeconds);
    const row = free === -1 ? ends.length : free;
    ends[row] = Math.max(endSeconds, startSeconds);
    rows[index] = row;
  }
  return { rows, count: ends.length };
};
