import type { CalibratedRun } from "@skein/cost-model/hardware";
import { expect, test } from "vitest";
import { calibrationLines, missedRunLines } from "./calibration-lines.ts";

const run = (name: string, predictedSeconds: number, more: Partial<CalibratedRun> = {}): CalibratedRun => ({
  name,
  overlaps: false,
  measuredSeconds: 0.1,
  predictedSeconds,
  ...more,
});

test("rows within 10 % are shown without a warning, with the noise of their rounds", () => {
  const lines = calibrationLines([run("after", 0.1095, { spread: 0.02 }), run("beside", 0.0905, { spread: 0.07 })]);
  expect(lines.filter((line) => line.includes("warning"))).toEqual([]);
  expect(lines).toContain("noise        rounds of one job differ by up to 7 %");
  expect(lines[1]).toMatch(/ 100 ms +110 ms {2}after$/);
});

test("warns about rows that are more than 10 % off, worst first, with their noise", () => {
  const lines = missedRunLines([
    run("after", 0.1),
    run("beside", 0.077, { overlaps: true, spread: 0.034 }),
    run("slow", 0.157),
  ]);
  expect(lines).toEqual([
    "warning: 2 of the 3 jobs that it was calibrated with are predicted more than 10 % off, 1 of them with overlap",
    "  57 % too slow: slow",
    "  23 % too fast, its rounds differ by 3 %: beside",
    "  expect other predictions to be off as far; calibrate on a machine without other work, with more --rounds",
  ]);
});

test("with one round the noise is unknown", () => {
  expect(calibrationLines([run("after", 0.1)])).toContain(
    "noise        unknown from one round; measure with --rounds 3",
  );
});
