/**
 * Returns the median of numbers: the mean of the two middle values for an even count, NaN for an empty list.
 *
 * @example
 * ```ts
 * console.log(median([3, 1, 100])); // 3
 * ```
 */
export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((x, y) => x - y);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};
