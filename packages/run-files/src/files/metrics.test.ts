import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isEventStep, isLineStep, MetricFiles, metricsFile } from "./metrics.ts";

test("event files have each step up to 10,000, and 9000 of each decade after that", () => {
  const count = (from: number, to: number): number => {
    let steps = 0;
    for (let step = from + 1; step <= to; step++) if (isEventStep(step)) steps++;
    return steps;
  };
  expect([count(0, 10_000), count(10_000, 100_000), count(100_000, 1_000_000)]).toEqual([10_000, 9000, 9000]);
  expect([10_001, 10_010, 100_010, 100_100].map(isEventStep)).toEqual([false, true, false, true]);
});

test("metrics.jsonl has each step up to 100,000, then each 10th, then each 100th", () => {
  const steps = [99_999, 100_001, 100_010, 1_000_010, 1_000_100];
  expect(steps.map(isLineStep)).toEqual([true, false, true, false, true]);
});

test("lines and events of late steps thin out, those of evaluations do not", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-metrics-"));
  try {
    const files = new MetricFiles(folder, 0);
    const eventBytes = (): number =>
      readFileSync(join(folder, readdirSync(folder).find((name) => name.startsWith("events"))!)).length;
    const grows = (record: () => void): boolean => {
      const before = eventBytes();
      record();
      return eventBytes() > before;
    };
    for (const [step, isThere] of [
      [9_999, true],
      [10_001, false],
      [10_010, true],
    ] as const)
      for (const type of ["step", "update", "rank-1"] as const)
        expect([step, type, grows(() => files.record({ type, step, loss: 1 }))]).toEqual([step, type, isThere]);
    expect(grows(() => files.record({ type: "evaluation", step: 10_001, loss: 1 }))).toBe(true);
    for (const step of [100_001, 100_010]) files.record({ type: "step", step, loss: 1 });
    files.record({ type: "evaluation", step: 100_011, loss: 1 });
    files.close();
    const lines = readFileSync(join(folder, metricsFile), "utf8").trim().split("\n");
    expect(lines).toHaveLength(12);
    expect(lines.slice(-2).map((line) => (JSON.parse(line) as { step: number }).step)).toEqual([100_010, 100_011]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
