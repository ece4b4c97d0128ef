/** Returns the mean of numbers, summed in order; NaN for an empty list. */
export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Returns the median of numbers: the mean of the two middle values for an even count, NaN for an empty list. */
export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/**
 * Returns the element with the median of the numbers that `numberOf` returns. For an even count: the lower of the two
 * middle elements. Undefined for an empty list.
 */
export const medianBy = <T>(values: readonly T[], numberOf: (value: T) => number): T | undefined =>
  values.toSorted((a, b) => numberOf(a) - numberOf(b))[Math.floor((values.length - 1) / 2)];

/** Returns the median absolute deviation from the median, a measure of spread that a few slow samples do not affect. */
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
