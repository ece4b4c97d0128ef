/** Of fewer values nothing is known of how alike neighbours are. */
const least = 4;
const mostAlike = 0.98;

/** Places of values in their order; equal ones share the middle of theirs. */
const ranksOf = (values: readonly number[]): number[] => {
  const ordered = values.toSorted((a, b) => a - b);
  return values.map((value) => (ordered.indexOf(value) + ordered.lastIndexOf(value)) / 2);
};

/** How alike neighbours of a series are, −1 to 1: the correlation of their ranks, which wild values do not move. */
const likeness = (values: readonly number[]): number => {
  const middle = (values.length - 1) / 2;
  const offsets = ranksOf(values).map((rank) => rank - middle);
  const [along, whole] = [
    offsets.slice(1).reduce((sum, offset, i) => sum + offset * offsets[i]!, 0),
    offsets.reduce((sum, offset) => sum + offset ** 2, 0),
  ];
  return whole === 0 ? 0 : along / whole;
};

/**
 * Tell how many independent values a series is worth: n (1 − r) / (1 + r), where each value takes r of the one before
 * it and the rest is chance. Steps of a run are alike because what slows one down, such as another program, lasts. What
 * few values say of r is too small by (1 + 4 r) / n, which is made good.
 *
 * @returns 1 to n.
 *
 * Cost: O(n²), of steps.
 *
 * Source: Bartlett 1946, Supplement to the Journal of the Royal Statistical Society 8; Kendall 1954, Biometrika 41 (too
 * small by how much).
 */
export const effectiveCount = (series: readonly number[]): number => {
  const { length: n } = series;
  if (n < least) return n;
  const seen = likeness(series);
  const r = Math.min(mostAlike, Math.max(0, seen + (1 + 4 * Math.max(0, seen)) / n));
  return Math.max(1, (n * (1 - r)) / (1 + r));
};
