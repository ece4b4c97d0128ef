import { expect, test } from "vitest";
import { ThinnedSeries } from "./thinned-series.ts";

test("keeps all points of a short series", () => {
  const series = new ThinnedSeries(4);
  for (const [x, y] of [
    [1, 5],
    [2, 7],
    [3, 6],
  ] as const)
    series.push(x, y);
  expect([series.xs, series.ys]).toEqual([
    [1, 2, 3],
    [5, 7, 6],
  ]);
});

test("averages equally many values per point of a long series, in bounded memory, up to the last", () => {
  const series = new ThinnedSeries(8);
  const count = 64;
  for (let x = 1; x <= count; x++) series.push(x, x);
  expect(series.xs.length).toBeLessThan(8);
  const stride = series.xs[0]!;
  expect(series.xs).toEqual(series.xs.map((_, i) => (i + 1) * stride));
  expect(series.ys).toEqual(series.xs.map((x) => x - (stride - 1) / 2));
  expect(series.xs.at(-1)).toBe(count);
});
