/**
 * Maximum number of elements of a matrix product for which all elements are compared with f64 sums. Of a larger
 * product, at most 4096 elements are compared.
 */
const most = 2 ** 18;

/** Returns evenly spread element indices to compare. The stride is odd, so that the indices include every column. */
export const sampledPositions = (count: number): number[] => {
  if (count <= most) return Array.from({ length: count }, (_, i) => i);
  const step = 2 * Math.ceil(count / most / 32) * 16 + 1;
  return Array.from({ length: Math.floor((count - 1) / step) + 1 }, (_, i) => i * step).slice(0, 4096);
};

export const sampleOf = (values: readonly number[]): number[] =>
  sampledPositions(values.length).map((position) => values[position]!);
