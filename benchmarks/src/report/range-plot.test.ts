import { expect, test } from "vitest";
import { formatRangePlot, type RangePlot, type RangeRow } from "./range-plot.ts";

const row = (value: number, more: Partial<RangeRow> = {}): RangeRow => ({
  label: "a < b",
  value,
  low: value,
  high: value,
  solid: true,
  note: "n & m",
  ...more,
});
const plot: RangePlot = {
  name: "p",
  title: "t",
  axis: "points",
  scale: "linear",
  reference: 0,
  legend: "l",
  rows: [row(0, { low: -1, high: 2 }), row(3, { limit: 4 })],
};
const numbersOf = (svg: string, pattern: RegExp): number[][] =>
  [...svg.matchAll(pattern)].map((match) => match.slice(1).map(Number));
const circles = (svg: string): number[] => numbersOf(svg, /<circle cx="([^"]+)"/g).flat();
const reference = (svg: string): number =>
  numbersOf(svg, /<path d="M([\d.]+) [^"]+" stroke="[^"]+" class="reference"/g)[0]![0]!;

test("values, ranges, limits and the reference stand on one linear axis", () => {
  const svg = formatRangePlot(plot);
  const [zero, three] = circles(svg) as [number, number];
  const perPoint = (three - zero) / 3;
  expect(reference(svg)).toBeCloseTo(zero, 1);
  expect(numbersOf(svg, /<path d="M([\d.]+) [\d.]+H([\d.]+)"/g)[0]).toEqual([
    expect.closeTo(zero - perPoint, 0),
    expect.closeTo(zero + 2 * perPoint, 0),
  ]);
  expect(numbersOf(svg, /<path d="M([\d.]+) [^"]+" stroke="#222222"/g)[0]![0]).toBeCloseTo(zero + 4 * perPoint, 0);
  const tick = (label: string): number => Number(new RegExp(`<text x="([^"]+)"[^>]*>${label}</text>`).exec(svg)![1]);
  expect([tick("0"), tick("3")]).toEqual([expect.closeTo(zero, 0), expect.closeTo(three, 0)]);
  expect(svg).toContain("a &lt; b");
  expect(svg).toContain("n &amp; m");
});

test("equal ratios are equally far apart on a logarithmic axis", () => {
  const svg = formatRangePlot({ ...plot, scale: "log", reference: 1, rows: [0.5, 1, 4].map((value) => row(value)) });
  const [half, one, four] = circles(svg) as [number, number, number];
  expect(four - one).toBeCloseTo(2 * (one - half), 0);
  expect(reference(svg)).toBeCloseTo(one, 1);
});

test("what lies beyond the most that is shown is an arrow at the edge, and does not squeeze the others", () => {
  const wide = formatRangePlot({ ...plot, most: 6, rows: [...plot.rows, row(80, { high: 90 })] });
  expect(circles(wide)).toHaveLength(2);
  expect(wide).toContain("l8 5l-8 5z");
  for (const [from, to] of numbersOf(wide, /<path d="M([\d.]+) [\d.]+H([\d.]+)"/g) as [number, number][])
    expect(Math.max(from, to)).toBeLessThan(901);
});

test("one value alone has an axis around it; none at all is refused", () => {
  expect(circles(formatRangePlot({ ...plot, rows: [row(0)] }))).toEqual([595]);
  expect(() => formatRangePlot({ ...plot, rows: [] })).toThrow('the plot "p" has no row');
});
