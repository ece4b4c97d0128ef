import { NdArray } from "@skein/tensor-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  countValues,
  edgesOf,
  emptyRange,
  histogramOf,
  joinCounts,
  jointRange,
  numBins,
  rangeOf,
} from "./histogram.ts";

/**
 * Difficult values for bins: values at bin edges, zeros of both signs, denormals, the largest numbers, and non-finite
 * values.
 */
const value = fc.oneof(
  fc.float(),
  fc.constantFrom(0, -0, 1, -1, 2 ** -149, -(2 ** -126), 3.4028234663852886e38, -3.4028234663852886e38),
  fc.constantFrom(Number.NaN, Infinity, -Infinity),
);
const values = fc.array(value, { maxLength: 200 });
const arrayOf = (numbers: readonly number[]): NdArray => NdArray.from(numbers, [numbers.length]);

test("every finite value is in its bin, and all other values are counted", () => {
  fc.assert(
    fc.property(values, (numbers) => {
      const array = arrayOf(numbers);
      const range = rangeOf(array);
      const histogram = histogramOf(countValues(array, range), range);
      const finite = array.toNumbers().filter(Number.isFinite);
      expect(histogram.size).toBe(numbers.length);
      expect(histogram.nonFinite).toBe(numbers.length - finite.length);
      expect(histogram.zeros).toBe(finite.filter((one) => one === 0).length);
      expect(histogram.counts.reduce((a, b) => a + b, 0)).toBe(finite.length);
      expect(histogram.min).toBe(finite.length === 0 ? null : Math.min(...finite) + 0);
      expect(histogram.max).toBe(finite.length === 0 ? null : Math.max(...finite) + 0);
      const edges = edgesOf(histogram);
      expect(edges).toHaveLength(finite.length === 0 ? 0 : histogram.counts.length + 1);
      expect([0, 1, numBins]).toContain(histogram.counts.length);
      // For values near an edge, either bin is correct. The bins before an edge must not contain more values than there
      // are up to the edge.
      const slack = 1e-12 * (Math.abs(histogram.min ?? 0) + Math.abs(histogram.max ?? 0));
      let below = 0;
      for (const [i, edge] of edges.slice(1, -1).entries()) {
        below += histogram.counts[i]!;
        expect(below).toBeGreaterThanOrEqual(finite.filter((one) => one < edge - slack).length);
        expect(below).toBeLessThanOrEqual(finite.filter((one) => one <= edge + slack).length);
      }
    }),
  );
});

test("parts counted over the common range add up to the whole", () => {
  fc.assert(
    fc.property(fc.array(values, { minLength: 1, maxLength: 5 }), (parts) => {
      const arrays = parts.map(arrayOf);
      const range = arrays.map(rangeOf).reduce(jointRange, emptyRange);
      const whole = arrayOf(parts.flat());
      expect(range).toEqual(rangeOf(whole));
      const [joined, counted] = [joinCounts(arrays.map((one) => countValues(one, range))), countValues(whole, range)];
      const { sum, sumOfSquares, ...exact } = joined;
      expect(exact).toEqual({
        size: counted.size,
        zeros: counted.zeros,
        nonFinite: counted.nonFinite,
        counts: counted.counts,
      });
      const scale = whole.toNumbers().reduce((total, one) => (Number.isFinite(one) ? total + Math.abs(one) : total), 0);
      expect(Math.abs(sum - counted.sum)).toBeLessThanOrEqual(1e-12 * scale);
      expect(Math.abs(sumOfSquares - counted.sumOfSquares)).toBeLessThanOrEqual(1e-12 * counted.sumOfSquares);
    }),
  );
});

test("mean and norm are those of the finite values", () => {
  const array = arrayOf([3, -4, Number.NaN, 0, Infinity]);
  const range = rangeOf(array);
  expect(histogramOf(countValues(array, range), range)).toMatchObject({ size: 5, zeros: 1, nonFinite: 2, norm: 5 });
  expect(histogramOf(countValues(array, range), range).mean).toBeCloseTo(-1 / 3, 15);
  const same = arrayOf([7, 7]);
  expect(histogramOf(countValues(same, rangeOf(same)), rangeOf(same)).counts).toEqual([2]);
});
