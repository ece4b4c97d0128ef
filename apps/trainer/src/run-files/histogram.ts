import type { Histogram } from "@skein/report";
import type { NdArray } from "@skein/tensor-core";

/** Number of bins of a histogram: as many as can be distinguished in a small picture. */
export const numBins = 64;

/** Range from the minimum to the maximum finite value; without finite values, from Infinity to -Infinity. */
export interface ValueRange {
  readonly min: number;
  readonly max: number;
}

/** Counts of some values of a tensor. Parts with the same range can be added. */
export interface HistogramPart {
  /** Number of all values, including non-finite ones. */
  readonly size: number;
  readonly zeros: number;
  readonly nonFinite: number;
  /** Sum of finite values. */
  readonly sum: number;
  readonly sumOfSquares: number;
  /** Counts by bin. */
  readonly counts: readonly number[];
}

/** Numbers of a tensor, without a copy if its memory holds numbers. */
const valuesOf = (array: NdArray): ArrayLike<number> =>
  array.data instanceof Float32Array || array.dtype === "i32" || array.dtype === "u32" || array.dtype === "u8"
    ? (array.data as ArrayLike<number>)
    : array.toNumbers();

/** The empty range, which every range contains. */
export const emptyRange: ValueRange = { min: Infinity, max: -Infinity };

/** Smallest range that contains both. */
export const jointRange = (a: ValueRange, b: ValueRange): ValueRange => ({
  min: Math.min(a.min, b.min),
  max: Math.max(a.max, b.max),
});

/** Range of a tensor's finite values. Cost: one pass. */
export const rangeOf = (array: NdArray): ValueRange => {
  const values = valuesOf(array);
  let { min, max } = emptyRange;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value < min && value > -Infinity) min = value;
    if (value > max && value < Infinity) max = value;
  }
  return { min: min + 0, max: max + 0 }; // converts -0 to 0
};

/**
 * Counts a tensor's values in bins over a range that contains them. Sums are in f64, with no visible loss for f32.
 *
 * Cost: one pass.
 */
export const countValues = (array: NdArray, { min, max }: ValueRange): HistogramPart => {
  const values = valuesOf(array);
  const bins = max > min ? numBins : max === min ? 1 : 0;
  const counts = Array<number>(bins).fill(0);
  const perUnit = bins / (max - min);
  let [zeros, finite, sum, sumOfSquares] = [0, 0, 0, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!(value - value === 0)) continue; // Infinity and NaN
    finite++;
    if (value === 0) zeros++;
    sum += value;
    sumOfSquares += value * value;
    counts[bins === 1 ? 0 : Math.min(bins - 1, Math.floor((value - min) * perUnit))]!++;
  }
  return { size: values.length, zeros, nonFinite: values.length - finite, sum, sumOfSquares, counts };
};

/** Adds counts of parts of a tensor, all over the same range. */
export const joinCounts = (parts: readonly HistogramPart[]): HistogramPart => {
  const total = (read: (part: HistogramPart) => number): number => parts.reduce((sum, part) => sum + read(part), 0);
  return {
    size: total(({ size }) => size),
    zeros: total(({ zeros }) => zeros),
    nonFinite: total(({ nonFinite }) => nonFinite),
    sum: total(({ sum }) => sum),
    sumOfSquares: total(({ sumOfSquares }) => sumOfSquares),
    counts: (parts[0]?.counts ?? []).map((_, bin) => total(({ counts }) => counts[bin]!)),
  };
};

/** Returns the histogram of counts over a range. */
export const histogramOf = (
  { size, zeros, nonFinite, sum, sumOfSquares, counts }: HistogramPart,
  { min, max }: ValueRange,
): Histogram => {
  const finite = size - nonFinite;
  return finite === 0
    ? { size, zeros, nonFinite, min: null, max: null, mean: null, norm: null, counts: [] }
    : { size, zeros, nonFinite, min, max, mean: sum / finite, norm: Math.sqrt(sumOfSquares), counts };
};

/** Edges of a histogram's bins, one more than bins. */
export const edgesOf = ({ min, max, counts: { length } }: Histogram): number[] =>
  length === 0
    ? []
    : Array.from({ length: length + 1 }, (_, i) => (i === length ? max! : min! + (i * (max! - min!)) / length));
