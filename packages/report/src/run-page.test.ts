import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { heatMapChart } from "./charts/heat-map-chart.ts";
import { histogramChart } from "./charts/histogram-chart.ts";
import { lineChart } from "./charts/line-chart.ts";
import { runPage } from "./run-page.ts";
import type { RunReport } from "./run-report.ts";

const label = "A chart";

/** Returns the cells of a heat map as columns and rows, by shade. */
const cellsOf = (svg: string): Map<number, string[]> =>
  new Map(
    [...svg.matchAll(/class="shade-(\d)" d="([^"]*)"/g)].map(([, shade, d]) => [
      Number(shade),
      [...d!.matchAll(/M(\d+ \d+)h(\d+)/g)].map(([, at, width]) => `${at} ${width}`),
    ]),
  );

describe("a heat map", () => {
  test("has a shade for each value: none for 0, the darkest from `most` on", () => {
    const svg = heatMapChart(
      {
        rows: ["a", "b"],
        edges: [0, 1, 4],
        values: [
          [0, 3],
          [1.5, 9],
        ],
        axis: "step",
        most: 3,
      },
      { label },
    );
    expect(cellsOf(svg)).toEqual(
      new Map([
        [4, ["0 1 2500"]],
        [8, ["2500 0 7500", "2500 1 7500"]],
      ]),
    );
  });

  test("shades increase with values, and no cell is outside or overlaps another", () => {
    const value = fc.oneof(fc.double({ min: 0, max: 4, noNaN: true }), fc.constantFrom(0, Number.NaN, Infinity, -1));
    fc.assert(
      fc.property(
        fc.array(fc.array(value, { minLength: 3, maxLength: 3 }), { minLength: 1, maxLength: 5 }),
        (values) => {
          const rows = values.map((_, row) => `${row}`);
          const svg = heatMapChart({ rows, edges: [0, 2, 5, 9], values, axis: "step", most: 3 }, { label });
          const cells = cellsOf(svg);
          const places = [...cells.values()].flat();
          expect(new Set(places).size).toBe(places.length);
          const shadeAt = (row: number, column: number): number => {
            const from = [0, 2222, 5556][column]!;
            return [...cells].find(([, all]) => all.some((cell) => cell.startsWith(`${from} ${row} `)))?.[0] ?? 0;
          };
          const all = values.flatMap((own, row) => own.map((one, column) => [one, shadeAt(row, column)] as const));
          for (const [a, shade] of all) {
            expect(shade === 0).toBe(!(a > 0));
            for (const [b, other] of all) if (a <= b) expect(Math.max(0, shade)).toBeLessThanOrEqual(other);
          }
        },
      ),
    );
  });
});

describe("a histogram", () => {
  const heightsOf = (svg: string): number[] =>
    [...svg.matchAll(/M(\d+) 44v-(\d+)h1/g)].reduce<number[]>((heights, [, bin, height]) => {
      heights[Number(bin)] = Number(height);
      return heights;
    }, []);

  test("has a bar for each bin with values, with heights by counts, and the rarest is visible", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat(1e9), fc.constant(0)), { minLength: 1, maxLength: 64 }),
        fc.boolean(),
        (counts, isLogarithmic) => {
          const svg = histogramChart({ min: -1, max: 3, counts }, { label, kind: "forward", isLogarithmic });
          const heights = heightsOf(svg);
          const most = Math.max(...counts);
          for (const [bin, count] of counts.entries()) {
            expect((heights[bin] ?? 0) > 0).toBe(count > 0);
            if (count === most && most > 0) expect(heights[bin]).toBe(44);
            for (const [other, less] of counts.entries())
              if (less <= count) expect(heights[other] ?? 0).toBeLessThanOrEqual(heights[bin] ?? 0);
          }
        },
      ),
    );
  });

  test("shows its ends, and the position of zero between them", () => {
    const svg = histogramChart({ min: -1, max: 3, counts: [1, 2] }, { label, kind: "forward" });
    expect(svg).toContain('x1="25%"');
    expect(svg).toMatch(/>[-−]1.*>3.*</);
    expect(histogramChart({ min: 1, max: 3, counts: [1, 2] }, { label, kind: "forward" })).not.toContain("zero");
    expect(histogramChart({ min: null, max: null, counts: [] }, { label, kind: "forward" })).toContain("nothing");
  });
});

test("downsampling a line keeps the smallest and the largest values", () => {
  const points = Array.from({ length: 30_000 }, (_, x): [number, number] => [x, x === 12_345 ? 50 : x === 7 ? -3 : 1]);
  const svg = lineChart([{ name: "x", kind: "forward", points }], { label, axis: "step" });
  const ys = [.../ d="M([^"]*)"/.exec(svg)![1]!.matchAll(/ (\d+)/g)].map(([, y]) => Number(y));
  expect([Math.min(...ys), Math.max(...ys)]).toEqual([0, 10_000]);
  expect(ys.length).toBeLessThanOrEqual(2001);
});

describe("the page of a run", () => {
  const number = fc.oneof(fc.double(), fc.constantFrom(0, -1, 1e300, Number.NaN, Infinity));
  const text = fc.constantFrom("a", `</script><img src=x onerror=alert(1)>" x='y`, "");
  const values = fc.array(fc.tuple(fc.nat(100), number), { maxLength: 4 });
  const experts = fc.nat(70).chain((numExperts) =>
    fc
      .array(fc.array(number, { minLength: numExperts + 1, maxLength: numExperts + 1 }), { maxLength: 4 })
      .map((loads) => ({
        layer: "block-1",
        steps: loads.map((_, i) => i + 1),
        loads,
        droppedShare: loads.map((_, i) => i / 10),
      })),
  );
  const histogram = fc.record({
    size: fc.nat(),
    zeros: fc.nat(3),
    nonFinite: fc.nat(3),
    min: fc.option(number),
    max: fc.option(number),
    mean: fc.option(number),
    norm: fc.option(number),
    counts: fc.array(fc.nat(9), { maxLength: 4 }),
  });
  const histograms = fc.record({
    step: fc.nat(),
    parameters: fc.array(
      fc.record({
        path: text,
        shape: fc.array(fc.nat(), { maxLength: 3 }),
        weights: histogram,
        gradients: fc.option(histogram, { nil: undefined }),
      }),
      { maxLength: 3 },
    ),
  });
  const anyRun: fc.Arbitrary<RunReport> = fc.record({
    name: text,
    about: text,
    origin: fc.option(text, { nil: undefined }),
    losses: values,
    evaluations: fc.record({ loss: values, accuracy: fc.constant([[1, 0.5]] as const) }),
    samplesPerSecond: values,
    experts: fc.array(experts, { maxLength: 2 }),
    moves: fc.array(
      fc.record({ layer: text, step: fc.nat(), moves: fc.nat(), busiestBefore: number, busiestAfter: number }),
      { maxLength: 3 },
    ),
    histograms: fc.option(histograms, { nil: undefined }),
  });

  test("has no invalid coordinate, and no text that becomes a tag, for any run", () => {
    fc.assert(
      fc.property(anyRun, (report) => {
        const page = runPage(report);
        const body = page.slice(page.indexOf("<body>"), page.lastIndexOf("<script>"));
        expect(body).not.toMatch(/NaN|Infinity|undefined/);
        expect(body).not.toMatch(/<img/);
        expect(body.split("<svg").length).toBe(body.split("</svg>").length);
      }),
      { numRuns: 200 },
    );
  });

  test("shows the mean of the two middle speeds of an even number of steps", () => {
    const samplesPerSecond = [10, 40, 20, 30].map((rate, step) => [step, rate] as const);
    const page = runPage({
      name: "even",
      about: "",
      losses: [],
      evaluations: {},
      samplesPerSecond,
      experts: [],
      moves: [],
    });
    expect(page).toContain("25.0 samples/s");
  });

  test("stays small: 64 experts in four layers over ten thousand steps", () => {
    const steps = Array.from({ length: 10_000 }, (_, i) => i + 1);
    const page = runPage({
      name: "large",
      about: "",
      losses: steps.map((step) => [step, 1 / step] as const),
      evaluations: {},
      samplesPerSecond: [],
      experts: ["a", "b", "c", "d"].map((layer) => ({
        layer,
        steps,
        loads: steps.map((step) => Array.from({ length: 64 }, (_, expert) => (expert * step) % 7)),
        droppedShare: steps.map((step) => (step % 10) / 100),
      })),
      moves: [],
    });
    expect(Buffer.byteLength(page)).toBeLessThan(1_600_000);
  });
});
