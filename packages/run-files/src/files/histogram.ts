import type { Histogram } from "@skein/report";
import type { NdArray } from "@skein/tensor-core";

/** Number of bins of a histogram. More bins could not be distinguished in a small picture. */
export const numBins = 64;

/** Range from the smallest to the largest finite value. Without finite values, from Infinity to -Infinity. */
export interface ValueRange {
  readonly min: number;
  readonly max: number;
}

/** Histogram counts of one part of a tensor's values. Counts over the same range can be added. */
export interface HistogramPart {
  /** Number of all values, including non-finite values. */
  readonly size: number;
  readonly zeros: number;
  readonly nonFinite: number;
  /** Sum of the finite values. */
  readonly sum: number;
  readonly sumOfSquares: number;
  /** Number of values in each bin. */
  readonly counts: readonly number[];
}

/**
 * Returns the elements of a tensor as numbers. Copies and converts the elements unless they are stored as f32, i32, u32
 * or u8.
 */
const valuesOf = (array: NdArray): ArrayLike<number> =>
  array.data instanceof Float32Array || array.dtype === "i32" || array.dtype === "u32" || array.dtype === "u8"
    ? (array.data as ArrayLike<number>)
    : array.toNumbers();

/** Range of an empty set of values. `jointRange` of this range and another range is the other range. */
export const emptyRange: ValueRange = { min: Infinity, max: -Infinity };

/** Returns the smallest range that contains two ranges. */
export const jointRange = (a: ValueRange, b: ValueRange): ValueRange => ({
  min: Math.min(a.min, b.min),
  max: Math.max(a.max, b.max),
});

/** Returns the range of a tensor's finite values. Cost: one pass. */
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
 * Counts the values of a tensor in bins over a range that contains all finite values. Sums are computed in f64, which
 * is accurate enough for f32 values.
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

/** Adds counts of the parts of a tensor. All parts must be counted over the same range. */
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

/** Returns the histogram for counts over a range. */
export const histogramOf = (
  { size, zeros, nonFinite, sum, sumOfSquares, counts }: HistogramPart,
  { min, max }: ValueRange,
): Histogram => {
  const finite = size - nonFinite;
  return finite === 0
    ? { size, zeros, nonFinite, min: null, max: null, mean: null, norm: null, counts: [] }
    : { size, zeros, nonFinite, min, max, mean: sum / finite, norm: Math.sqrt(sumOfSquares), counts };
};

/** Returns the edges of a histogram's bins; one more than the number of bins. */
export const edgesOf = ({ min, max, counts: { length } }: Histogram): number[] =>
  length === 0
    ? []
    : Array.from({ length: length + 1 }, (_, i) => (i === length ? max! : min! + (i * (max! - min!)) / length));
