/** Minimum number of values for which a correlation is estimated. */
const least = 4;
const maxCorrelation = 0.98;

/** Returns the ranks of values in ascending order; equal values get their mean rank. */
const ranksOf = (values: readonly number[]): number[] => {
  const ordered = values.toSorted((a, b) => a - b);
  return values.map((value) => (ordered.indexOf(value) + ordered.lastIndexOf(value)) / 2);
};

/**
 * Computes the rank correlation of consecutive values in a series, −1 to 1. Ranks make the correlation robust against
 * outliers.
 */
const rankAutocorrelation = (values: readonly number[]): number => {
  const middle = (values.length - 1) / 2;
  const offsets = ranksOf(values).map((rank) => rank - middle);
  const [along, whole] = [
    offsets.slice(1).reduce((sum, offset, i) => sum + offset * offsets[i]!, 0),
    offsets.reduce((sum, offset) => sum + offset ** 2, 0),
  ];
  return whole === 0 ? 0 : along / whole;
};

/**
 * Computes the effective number of independent values in a series of n values: n (1 − r) / (1 + r), with r =
 * correlation of consecutive values. Step times are correlated, because another program, for example, slows several
 * consecutive steps. The estimate of r has the bias −(1 + 4 r) / n, which this function corrects.
 *
 * @returns a number from 1 to n.
 *
 * Cost: O(n²) for n steps.
 *
 * Source: Bartlett 1946, Supplement to the Journal of the Royal Statistical Society 8; Kendall 1954, Biometrika 41
 * (bias of the estimate).
 */
export const effectiveCount = (series: readonly number[]): number => {
  const { length: n } = series;
  if (n < least) return n;
  const estimate = rankAutocorrelation(series);
  const r = Math.min(maxCorrelation, Math.max(0, estimate + (1 + 4 * Math.max(0, estimate)) / n));
  return Math.max(1, (n * (1 - r)) / (1 + r));
};
