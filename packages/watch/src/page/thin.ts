/** A line thinned to two values per pixel column: the minimum and the maximum, in the order of their positions. */
export interface ThinLine {
  readonly values: (number | null)[];
  /** Number of points in the range before thinning. */
  readonly points: number;
}

/** Returns the insertion index of `x` in ascending numbers, before equal numbers. */
export const lowerBound = (numbers: ArrayLike<number>, length: number, x: number): number => {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! < x) low = middle + 1;
    else high = middle;
  }
  return low;
};

/**
 * Thins a line to the detail visible on `columns` pixel columns between `from` and `to`. Each minimum and maximum
 * remains visible.
 *
 * Cost: linear in the number of points in the range.
 *
 * @param x Positions, ascending.
 * @param only Range, number of columns, and `above`: only values above this limit are drawn, such as values above 0 on
 * a logarithmic axis. NaN is never drawn.
 */
export const thin = (
  x: ArrayLike<number>,
  y: ArrayLike<number>,
  length: number,
  { from, to, columns, above = -Infinity }: { from: number; to: number; columns: number; above?: number },
): ThinLine => {
  const values = Array<number | null>(2 * columns).fill(null);
  const width = (to - from) / columns || 1;
  let points = 0;
  const first = lowerBound(x, length, from);
  let [column, low, high, lowAt, highAt] = [-1, 0, 0, -1, -1];
  const flush = (): void => {
    if (lowAt < 0) return;
    values[2 * column] = lowAt <= highAt ? low : high;
    if (lowAt !== highAt) values[2 * column + 1] = lowAt <= highAt ? high : low;
  };
  for (let i = first; i < length && x[i]! <= to; i++) {
    const value = y[i]!;
    if (!(value > above)) continue;
    const own = Math.min(columns - 1, Math.max(0, Math.floor((x[i]! - from) / width)));
    points++;
    if (own !== column) {
      flush();
      [column, low, high, lowAt, highAt] = [own, value, value, i, i];
    } else if (value < low) [low, lowAt] = [value, i];
    else if (value > high) [high, highAt] = [value, i];
  }
  flush();
  return { values, points };
};
