/** Middle value; the mean of the two middle ones for an even count. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/** Median absolute deviation from the median: a spread that a few slow samples cannot move. */
export const medianAbsoluteDeviation = (values: readonly number[]): number => {
  const centre = median(values);
  return median(values.map((value) => Math.abs(value - centre)));
};

export interface Summary {
  readonly median: number;
  readonly mad: number;
  readonly n: number;
}

/** Median, spread and count of samples. */
export const summarize = (values: readonly number[]): Summary => ({
  median: median(values),
  mad: medianAbsoluteDeviation(values),
  n: values.length,
});
