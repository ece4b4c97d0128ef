/** Median of numbers; the mean of the two middle values for an even count. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/** Median absolute deviation from the median: a measure of spread that is robust against a few slow samples. */
export const medianAbsoluteDeviation = (values: readonly number[]): number => {
  const center = median(values);
  return median(values.map((value) => Math.abs(value - center)));
};

export interface Summary {
  readonly median: number;
  readonly mad: number;
  readonly n: number;
}

/** Median, median absolute deviation and number of samples. */
export const summarize = (values: readonly number[]): Summary => ({
  median: median(values),
  mad: medianAbsoluteDeviation(values),
  n: values.length,
});
