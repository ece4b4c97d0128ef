/**
 * Largest number of elements of a product that are all compared with f64 sums; of a larger product at most 4096 are.
 */
const most = 2 ** 18;

/** Positions to compare, evenly spread, with an odd step so that they include every column. */
export const sampledPositions = (count: number): number[] => {
  if (count <= most) return Array.from({ length: count }, (_, i) => i);
  const step = 2 * Math.ceil(count / most / 32) * 16 + 1;
  return Array.from({ length: Math.floor((count - 1) / step) + 1 }, (_, i) => i * step).slice(0, 4096);
};

export const sampleOf = (values: readonly number[]): number[] =>
  sampledPositions(values.length).map((position) => values[position]!);
