import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { predictCells } from "../published/calibrate-cluster.ts";
import { calibratedCluster } from "../published/calibrated-cluster.ts";
import { allReduceMethods, folds } from "../published/held-out.ts";
import { predictLarger } from "../published/predict-larger.ts";
import { cells, methods, modelNames } from "../published/seven-methods.ts";
import { formatError, formatRate } from "./format.ts";
import { largerSection } from "./larger-section.ts";
import { sentencesOf } from "./page.ts";
import { ratiosPlot, tableSection } from "./table-section.ts";

const predicted = predictCells(calibratedCluster, cells);
const rowsOf = (markdown: string, first: string): string[] =>
  markdown.split("\n").filter((line) => line.startsWith(`| ${first}`));

test("each cell of the table is on the page, measured and predicted", () => {
  const section = tableSection(predicted);
  for (const method of methods) expect(rowsOf(section, `${method} `)).toHaveLength(1 + modelNames.length);
  const [cell] = predicted;
  expect(section).toContain(
    `${formatRate(cell!.samplesPerSecond)} → ${formatRate(cell!.samplesPerSecond / (1 + cell!.relativeError))} (${formatError(cell!.relativeError)})`,
  );
  expect(section).toContain("| yes, met");
  expect(section).not.toContain("yes, missed");
});

test("a row that misses what was asked says so", () => {
  const spoiled = predicted.map((cell) =>
    cell.method === "MG-WFBP" && cell.worldSize === 16 ? { ...cell, relativeError: 0.2 } : cell,
  );
  expect(tableSection(spoiled)).toContain("yes, missed");
});

test("the plot has a row for each method and model, filled where something was asked", () => {
  const { rows } = ratiosPlot(predicted);
  expect(rows).toHaveLength(21);
  expect(rows.filter(({ solid }) => solid)).toHaveLength(3 * allReduceMethods.length);
  for (const { low, value, high } of rows) expect(low <= value && value <= high).toBe(true);
});

test("sentences say the worst and the middle of what was found", () => {
  const asked = predicted.filter(({ method }) => allReduceMethods.includes(method));
  const [first, second, third] = sentencesOf({
    calibration: { cluster: calibratedCluster, found: [], residuals: [] },
    predicted,
    heldOut: [{ fold: folds[0]!, predicted: asked.map((cell) => ({ ...cell, relativeError: 0.123 })) }],
    rehearsed: asked.map((cell) => ({ cell, byModel: 0.5, withRatio: -0.031, repeated: 0.21 })),
    larger: [],
  });
  expect(first).toContain("12.3 % at worst");
  expect(second).toContain("in the measured order in every column");
  expect(third).toContain("met to 3.1 %");
  expect(third).toContain("without a model meets half of them to 21.0 %");
});

test("beside each prediction of 32 GPUs stands the last doubling, repeated without a model", () => {
  const larger = predictLarger(
    calibratedCluster,
    predicted.filter(({ worldSize }) => worldSize === 16),
  );
  expect(larger).toHaveLength(63);
  for (const { model, method, network, repeatedSamplesPerSecond } of larger) {
    const [, of8, of16] = cells.filter((c) => c.model === model && c.method === method && c.network === network);
    expect(repeatedSamplesPerSecond).toBeCloseTo(of16!.samplesPerSecond ** 2 / of8!.samplesPerSecond, 6);
    expect(largerSection(larger)).toContain(`; ${formatRate(repeatedSamplesPerSecond)})`);
  }
});

describe("the page that is committed", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/benchmarks/2026-11-28-predictions.md"), "utf8");

  test("says of 32 GPUs what the model says today, to 1 %", () => {
    const of16 = predicted.filter(({ worldSize }) => worldSize === 16);
    const figuresOf = (markdown: string): number[] =>
      markdown
        .slice(markdown.indexOf("## 32 GPUs"))
        .split("\n## ")[0]!
        .split("\n")
        .filter((line) => modelNames.some((model) => line.startsWith(`| ${model}`)))
        .flatMap((line) =>
          [...line.matchAll(/([\d.]+) \(([\d.]+); ([\d.]+)\)/g)].flatMap(([, ...rates]) => rates.map(Number)),
        );
    const [written, now] = [figuresOf(page), figuresOf(largerSection(predictLarger(calibratedCluster, of16)))];
    expect(written).toHaveLength(3 * 63);
    for (const [i, rate] of written.entries()) expect(Math.abs(now[i]! / rate - 1)).toBeLessThan(0.01);
  });
});
