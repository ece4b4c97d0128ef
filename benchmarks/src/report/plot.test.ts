import { describe, expect, test } from "vitest";
import { formatPlot, type Plot } from "./plot.ts";

/**
 * Returns the microseconds of a message over a link of 10 µs and 2 GB/s, without noise. The peer takes 100 times as
 * long.
 */
const line = (bytes: number): number => 10 + bytes / 2000;
const sizes = [2 ** 12, 2 ** 16, 2 ** 20, 2 ** 24];
const plot: Plot = {
  name: "p",
  title: "a < b & c",
  series: [
    { name: "ours", peer: false, points: sizes.map((bytes) => ({ bytes, microseconds: line(bytes) })) },
    { name: "<peer>", peer: true, points: sizes.map((bytes) => ({ bytes, microseconds: 100 * line(bytes) })) },
  ],
};
const svg = formatPlot(plot);
const numbers = (text: string): number[] => [...text.matchAll(/-?\d+(\.\d+)?/g)].map(([number]) => Number(number));

/** Returns the position of a label: x for labels below the axis, y for labels left of a grid line. */
const labelAt = (label: string): { x: number; y: number } => {
  const [, x, y] = new RegExp(`<text x="([^"]+)" y="([^"]+)"[^>]*>${label}</text>`).exec(svg)!;
  return { x: Number(x), y: Number(y) };
};

describe("a plot of a perfect line", () => {
  test("says its α and 1/β, of each series", () => {
    expect(svg).toContain("α 10 µs, 1/β 2.0 GB/s");
    expect(svg).toContain("α 1000 µs, 1/β 0.020 GB/s");
  });

  test("puts marks above the labels of their sizes, and on the fitted curve", () => {
    const circles = [...svg.matchAll(/<circle cx="([^"]+)" cy="([^"]+)"/g)]
      .slice(0, sizes.length)
      .map(([, x, y]) => [Number(x), Number(y)] as const);
    expect(circles.map(([x]) => x)).toEqual(
      ["4 KiB", "64 KiB", "1 MiB", "16 MiB"].map((label) => expect.closeTo(labelAt(label).x, 1)),
    );
    const curve = numbers(/points="([^"]+)"/.exec(svg)![1]!);
    // The curve has 96 segments and interleaved x and y. The circles are at its points 0, 32, 64 and 96.
    for (const [i, [x, y]] of circles.entries()) {
      expect(curve[64 * i]).toBeCloseTo(x, 0);
      expect(Math.abs(curve[64 * i + 1]! - y)).toBeLessThanOrEqual(0.2);
    }
  });

  test("puts a time between the labels of the powers around it, by its logarithm", () => {
    const [low, high] = [labelAt("10 µs").y, labelAt("10 ms").y];
    const [, cy] = /<circle cx="[^"]+" cy="([^"]+)"/.exec(svg)!;
    const share = Math.log10(line(2 ** 12) / 10) / 3;
    expect(Number(cy)).toBeCloseTo(low - 4 + share * (high - low), 0); // labels are 4 pixels below their lines
    expect(high).toBeLessThan(low);
  });

  test("draws the peer dashed, and escapes what stands in text", () => {
    expect(svg.match(/<polyline[^>]*stroke-dasharray/g)).toHaveLength(1);
    expect(svg).toContain("&lt;peer&gt;");
    expect(svg).toContain("a &lt; b &amp; c");
    expect(svg).not.toContain("<peer>");
  });

  test("stays within its picture", () => {
    const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!;
    for (const [, points] of svg.matchAll(/points="([^"]+)"/g)) {
      const all = numbers(points!);
      expect(Math.min(...all)).toBeGreaterThan(0);
      all.forEach((pixel, i) => expect(pixel).toBeLessThan(Number(i % 2 === 0 ? width : height)));
    }
  });
});

test("a plot without a point is refused", () => {
  expect(() => formatPlot({ name: "p", title: "t", series: [] })).toThrow("at least one point");
});
