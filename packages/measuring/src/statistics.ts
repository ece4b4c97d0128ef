/** Returns the median of numbers. For an even count, returns the mean of the two middle values. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/**
 * Returns the median absolute deviation from the median: a measure of spread that is robust against a few slow samples.
 */
export const medianAbsoluteDeviation = (values: readonly number[]): number => {
  const center = median(values);
  return median(values.map((value) => Math.abs(value - center)));
};

export interface Summary {
  readonly median: number;
  readonly mad: number;
  readonly n: number;
}

/** Returns median, median absolute deviation and number of samples. */
export const summarize = (values: readonly number[]): Summary => ({
  median: median(values),
  mad: medianAbsoluteDeviation(values),
  n: values.length,
});
