import { expect, test } from "vitest";
import { mean, median, medianAbsoluteDeviation, medianBy, summarize } from "./statistics.ts";

test("median is the middle of an odd count and the mean of the two middle values of an even count", () => {
  expect(median([5, 1, 3])).toBe(3);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([])).toBeNaN();
});

test("the element at the median is one of the list, the lower one of two", () => {
  const steps = [4, 1, 3, 2].map((seconds) => ({ seconds }));
  expect(medianBy(steps, ({ seconds }) => seconds)).toBe(steps[3]);
  expect(medianBy(steps.slice(1), ({ seconds }) => seconds)).toBe(steps[3]);
  expect(medianBy([], Number)).toBeUndefined();
});

test("the mean is the sum divided by the count", () => {
  expect(mean([1, 2, 6])).toBe(3);
  expect(mean([])).toBeNaN();
});

test("the median absolute deviation ignores an outlier", () => {
  expect(medianAbsoluteDeviation([1, 2, 3, 4, 1000])).toBe(1);
});

test("a summary counts its samples", () => {
  expect(summarize([2, 2, 8])).toEqual({ median: 2, mad: 0, n: 3 });
});
