import type { Histogram } from "@skein/report";
import type { NdArray } from "@skein/tensor-core";

/** Bins of a histogram: as many as an eye tells apart in a small picture. */
export const numBins = 64;

/** From the least finite value to the greatest; where there is none, from Infinity to -Infinity. */
export interface ValueRange {
  readonly min: number;
  readonly max: number;
}

/** What is counted of some values of a tensor. Parts of one range can be put together. */
export interface HistogramPart {
  /** All values, those that are not finite among them. */
  readonly size: number;
  readonly zeros: number;
  readonly nonFinite: number;
  /** Of finite values. */
  readonly sum: number;
  readonly sumOfSquares: number;
  /** By bin. */
  readonly counts: readonly number[];
}

/** Numbers of a tensor, without a copy where its memory holds numbers. */
const valuesOf = (array: NdArray): ArrayLike<number> =>
  array.data instanceof Float32Array || array.dtype === "i32" || array.dtype === "u32" || array.dtype === "u8"
    ? (array.data as ArrayLike<number>)
    : array.toNumbers();

/** The range of no value: the greatest that holds none, and any range holds it. */
export const emptyRange: ValueRange = { min: Infinity, max: -Infinity };

/** The least range that holds both. */
export const jointRange = (a: ValueRange, b: ValueRange): ValueRange => ({
  min: Math.min(a.min, b.min),
  max: Math.max(a.max, b.max),
});

/** The range of a tensor's finite values. Cost: one look at each. */
export const rangeOf = (array: NdArray): ValueRange => {
  const values = valuesOf(array);
  let { min, max } = emptyRange;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value < min && value > -Infinity) min = value;
    if (value > max && value < Infinity) max = value;
  }
  return { min: min + 0, max: max + 0 }; // of the two zeros one
};

/**
 * Count a tensor's values in bins over a range that holds them. Sums are in f64: of f32 they lose nothing that shows.
 *
 * Cost: one look at each value.
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

/** Put parts of a tensor together that were counted over the same range. */
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

/** The histogram of what was counted over a range. */
export const histogramOf = (
  { size, zeros, nonFinite, sum, sumOfSquares, counts }: HistogramPart,
  { min, max }: ValueRange,
): Histogram => {
  const finite = size - nonFinite;
  return finite === 0
    ? { size, zeros, nonFinite, min: null, max: null, mean: null, norm: null, counts: [] }
    : { size, zeros, nonFinite, min, max, mean: sum / finite, norm: Math.sqrt(sumOfSquares), counts };
};

/** The edges of a histogram's bins, one more than these. */
export const edgesOf = ({ min, max, counts: { length } }: Histogram): number[] =>
  length === 0
    ? []
    : Array.from({ length: length + 1 }, (_, i) => (i === length ? max! : min! + (i * (max! - min!)) / length));
