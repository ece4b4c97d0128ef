import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { kinds } from "../tokens.ts";
import { flameChart, type FlameNode } from "./flame-chart.ts";
import { rowsOfIntervals } from "./interval-rows.ts";
import { memoryChart, peakPosition } from "./memory-chart.ts";
import { numUndrawablePoints, rooflineChart } from "./roofline-chart.ts";
import { stackedBar } from "./stacked-bar.ts";
import { timelineChart, type TimelineSpan } from "./timeline-chart.ts";

const label = "A chart";
const attributes = (svg: string, name: string): string[] =>
  [...svg.matchAll(new RegExp(` ${name}="([^"]*)"`, "g"))].map(([, value]) => value!);
const marksOf = (svg: string): [x: string, width: string, title: string][] =>
  [...svg.matchAll(/<svg (?:class="[^"]*" )?x="([^"]*)"(?: y="[^"]*")? width="([^"]*)".*?<title>([^<]*)</g)].map(
    ([, x, width, title]) => [x!, width!, title!],
  );

test("segments of a bar are adjacent, each as wide as its share", () => {
  const svg = stackedBar(
    [
      { name: "forward", kind: "forward", seconds: 0.001 },
      { name: "nothing", kind: "update", seconds: 0 },
      { name: "backward", kind: "backward", seconds: 0.003 },
    ],
    { label },
  );
  expect(marksOf(svg)).toEqual([
    ["0%", "25%", "forward: 1.00 ms, 25.0 %"],
    ["25%", "75%", "backward: 3.00 ms, 75.0 %"],
  ]);
});

describe("a timeline", () => {
  const span = (startSeconds: number, endSeconds: number, text: string): TimelineSpan => ({
    startSeconds,
    endSeconds,
    label: text,
    kind: "forward",
  });

  test("has spans in ten-millionths of the time range, with the indices of their labels", () => {
    const svg = timelineChart(
      [{ group: "rank 0", name: "compute", spans: [span(0, 1, "a"), span(1, 4, "b")], predicted: [span(0, 2, "a")] }],
      { label },
    );
    expect(attributes(svg, "d")).toEqual(["M0 5h2500000M2500000 5h7500000", "M0 5h5000000"]);
    expect([attributes(svg, "data-l"), attributes(svg, "data-labels")]).toEqual([["0 1", "0"], ["a&#10;b"]]);
  });

  test("begins before its origin if a rank began earlier", () => {
    const svg = timelineChart([{ group: "", name: "", spans: [span(-1, 0, "a"), span(0, 3, "b")] }], { label });
    expect(attributes(svg, "d")).toEqual(["M0 5h2500000M2500000 5h7500000"]);
    expect([attributes(svg, "data-start"), attributes(svg, "data-end")]).toEqual([["-1"], ["3"]]);
  });

  test("puts concurrent spans on separate rows, as few as possible, without overlaps", () => {
    const interval = fc
      .tuple(fc.nat(50), fc.nat(20))
      .map(([start, length]) => ({ startSeconds: start, endSeconds: start + length + 1 }));
    fc.assert(
      fc.property(fc.array(interval, { maxLength: 30 }), (intervals) => {
        const { rows, count } = rowsOfIntervals(intervals);
        for (const [i, a] of intervals.entries())
          for (const [j, b] of intervals.entries())
            if (i < j && rows[i] === rows[j])
              expect(a.endSeconds <= b.startSeconds || b.endSeconds <= a.startSeconds).toBe(true);
        const most = Array.from(
          { length: 72 },
          (_, t) => intervals.filter(({ startSeconds, endSeconds }) => startSeconds <= t && t < endSeconds).length,
        );
        expect(count).toBe(Math.max(...most));
      }),
    );
  });
});

test("a flame chart's parts are below their whole, largest first, and never wider than their parent", () => {
  const leaf = (name: string, seconds: number): FlameNode => ({ name, seconds, kind: "forward", children: [] });
  const svg = flameChart(
    {
      name: "step",
      kind: "other",
      seconds: 4,
      children: [leaf("small", 1), { ...leaf("large", 3), children: [leaf("inner", 1.5)] }, leaf("none", 0)],
    },
    { label },
  );
  expect(marksOf(svg)).toEqual([
    ["0%", "100%", "step: 4.00 s, 100 %"],
    ["0%", "75%", "large: 3.00 s, 75.0 %"],
    ["0%", "37.5%", "inner: 1.50 s, 37.5 %"],
    ["75%", "25%", "small: 1.00 s, 25.0 %"],
  ]);
  expect(attributes(svg, "y").filter((y) => Number(y) % 21 === 0)).toEqual(["0", "21", "42", "21"]);
});

test("a roofline's dots are placed by the logarithms of their rates, and an operator at the roof is on the roof", () => {
  const roof = { name: "d", flopsPerSecond: 1e12, bytesPerSecond: 1e10 };
  const svg = rooflineChart(
    [
      { name: "peak", kind: "forward", flops: 1e12, bytes: 1e9, seconds: 1 },
      { name: "tenth", kind: "forward", flops: 1e11, bytes: 1e8, seconds: 1 },
      { name: "moves", kind: "forward", flops: 0, bytes: 1e8, seconds: 1 },
    ],
    { label, roof },
  );
  const [first, second] = attributes(svg, "cy").map(Number);
  const roofY = /class="roof">.*?y2="([\d.]+)"/.exec(svg)![1];
  expect(String(first)).toBe(roofY);
  // The axis shows two decades, with half a decade of margin above and below, so one decade is half of 320 pixels.
  expect(second! - first!).toBeCloseTo(160, 5);
  expect(attributes(svg, "cx")).toEqual(["75%", "75%"]);
  expect(numUndrawablePoints([{ name: "", kind: "other", flops: 0, bytes: 1, seconds: 1 }])).toBe(1);
});

test("a memory chart marks the first peak, even if there are too many positions to draw", () => {
  const liveBytes = Array.from({ length: 10_000 }, (_, at) => (at === 4321 ? 900 : at % 7));
  expect(peakPosition([1, 5, 5, 2])).toBe(1);
  const svg = memoryChart(
    { residentBytes: 100, liveBytes, lifetimes: [{ name: "x", bytes: 900, from: 4321, to: 4321 }] },
    { label },
  );
  expect(svg).toContain("1000 B at node 4321");
  expect(svg).toContain('viewBox="0 0 2000 1000"');
  const highest = Math.min(
    ...[.../class="live" d="([^"]*)"/.exec(svg)![1]!.matchAll(/V(\d+)/g)].map(([, y]) => Number(y)),
  );
  expect(highest).toBe(Math.round(1000 * (1 - 1 / 1.08)));
});

describe("for any numbers", () => {
  const anything = fc.oneof(fc.double(), fc.constantFrom(0, -1, 1e-300, 1e300, Number.NaN, Infinity));
  const text = fc.constantFrom("a", "</svg>", "");
  const kind = fc.constantFrom(...kinds);
  const span = fc.record({ label: text, kind, startSeconds: anything, endSeconds: anything });
  const node: fc.Memo<FlameNode> = fc.memo((depth) =>
    fc.record({
      name: text,
      kind,
      seconds: anything,
      children: depth <= 1 ? fc.constant([]) : fc.array(node(depth - 1), { maxLength: 3 }),
    }),
  );

  const isDrawn = (svg: string): void => {
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    expect(svg.split("<svg").length).toBe(svg.split("</svg>").length);
    for (const radius of attributes(svg, "r")) expect(Number(radius)).toBeGreaterThanOrEqual(0);
    for (const size of [...attributes(svg, "width"), ...attributes(svg, "height")])
      expect(Number.parseFloat(size)).toBeGreaterThanOrEqual(0);
  };

  test("no chart has an invalid coordinate, or a negative size", () => {
    fc.assert(
      fc.property(
        fc.array(span, { maxLength: 4 }),
        fc.array(anything, { maxLength: 5 }),
        anything,
        anything,
        node(4),
        (spans, numbers, a, b, root) => {
          isDrawn(timelineChart([{ group: "g", name: "n", spans, predicted: spans }], { label }));
          isDrawn(
            stackedBar(
              numbers.map((seconds) => ({ name: "x", kind: "other", seconds })),
              { label },
            ),
          );
          isDrawn(
            memoryChart(
              { residentBytes: a, liveBytes: numbers, lifetimes: [{ name: "x", bytes: b, from: 0, to: 3 }] },
              { label },
            ),
          );
          const points = numbers.map((flops) => ({ name: "x", kind: "other" as const, flops, bytes: a, seconds: b }));
          isDrawn(rooflineChart(points, { label, roof: { name: "r", flopsPerSecond: a, bytesPerSecond: b } }));
          isDrawn(flameChart(root, { label }));
        },
      ),
      { numRuns: 300 },
    );
  });

  test("one row is enough, and an empty chart has a note", () => {
    for (const svg of [
      timelineChart([], { label }),
      stackedBar([], { label }),
      rooflineChart([], { label }),
      memoryChart({ residentBytes: 0, liveBytes: [], lifetimes: [] }, { label }),
    ]) {
      isDrawn(svg);
      expect(svg).toContain("nothing to show");
    }
    const one = rooflineChart([{ name: "x", kind: "other", flops: 1, bytes: 1, seconds: 1 }], { label });
    isDrawn(one);
    expect(attributes(one, "cx")).toEqual(["50%"]);
  });
});
