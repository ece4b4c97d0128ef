import { expect, test } from "vitest";
import { planSlowLinks, type SlowLinksRun } from "../slow-links/plan.ts";
import { calibrationJobs } from "./calibration.ts";
import { cellsOf, choiceOf, errorOf, type OwnStep, type PlannedStep } from "./own-step.ts";
import { ownStepsPage, ownStepsSentences } from "./page.ts";

const runs = planSlowLinks({ quick: false, seeds: [1], resultsOf: () => new Map() }).filter(
  ({ network, ranks, standing }) => network.name === "1-gbps" && ranks === 2 && standing === "dense",
);
const step = (run: SlowLinksRun, measuredSeconds: number, predictedSeconds: number): OwnStep => ({
  run,
  measured: { median: measuredSeconds, mad: 0.001, n: 12 },
  predictedSeconds,
  takes: 3,
  relativeHalfRange: 0.07,
});
const named = (name: string, model = runs[0]!.model): SlowLinksRun =>
  runs.find((run) => run.method.name === name && run.model === model)!;

test("an error is what was predicted too much", () => {
  expect(errorOf(step(named("bsp"), 0.1, 0.11))).toBeCloseTo(0.1);
  expect(errorOf(step(named("bsp"), 0.1, 0.08))).toBeCloseTo(-0.2);
});

test("a choice is judged by what was measured, within its own network, ranks and model", () => {
  const other = runs.find(({ model }) => model !== runs[0]!.model)!.model;
  const steps = [
    step(named("bsp"), 0.1, 0.09),
    step(named("wait-free-per-tensor"), 0.08, 0.1),
    step(named("bsp", other), 0.01, 0.01),
  ];
  const cells = cellsOf(steps);
  expect(cells.map((cell) => cell.length)).toEqual([2, 1]);
  const { chosen, best, regret } = choiceOf(cells[0]!);
  expect([chosen.run.method.name, best.run.method.name]).toEqual(["bsp", "wait-free-per-tensor"]);
  expect(regret).toBeCloseTo(0.25);
});

test("sentences and tables say the middle, the worst and what a choice costs", () => {
  const steps = [
    step(named("bsp"), 0.1, 0.105),
    step(named("wait-free-per-tensor"), 0.08, 0.12),
    step(named("dear-per-tensor"), 0.09, 0.09),
  ];
  const [first, second, third] = ownStepsSentences(steps);
  expect(first).toContain("3 configurations to 5.0 % in the middle");
  expect(first).toContain("2 of them");
  expect(second).toContain("+50.0 %");
  expect(second).toContain("wait-free-per-tensor");
  expect(third).toContain("0 of 1 cells"); // dear-per-tensor is chosen, and takes 12.5 % longer
  const planned: PlannedStep = {
    run: named("bsp"),
    take: 1,
    lossless: true,
    settings: { overlap: "dear", buckets: { kind: "fixed-size", bytes: 4096 }, priorities: "none" },
    predictedSeconds: 0.07,
    measured: { median: 0.084, mad: 0.001, n: 12 },
  };
  const page = ownStepsPage(steps, [planned], {
    date: "2026-01-01",
    command: "x",
    machine: "y",
    draw: ({ rows }) => `${rows.length} rows`,
  });
  expect(page).toContain("3 rows");
  expect(page).toContain("12.5 %");
  expect(page).toContain("missed");
  expect(page).toMatch(
    /2, without loss *\| overlap: dear; buckets: kind:fixed-size, bytes:4096 *\| 70\.0 *\| 84\.0 ± 1\.0 *\| wait-free-per-tensor *\| 80\.0 *\| \+5\.0 % *\| met/,
  );
  expect(page).toContain("±7.0 % around their middle");
  expect(page).toMatch(/wait-free-per-tensor *\| 80\.0 ± 1\.0 *\| 120\.0 *\| \+50\.0 %/);
});

test("a machine is calibrated without overlap of merged gradients, and over a network that is not predicted", () => {
  const own = runs.filter(({ model }) => model === runs[0]!.model);
  const { jobs, files } = calibrationJobs(own);
  expect(jobs.map((job) => [job["overlap"], (job["buckets"] as { kind: string }).kind])).toEqual([
    ["none", "fixed-size"],
  ]);
  for (const job of jobs)
    expect((job["network"] as { emulate: object }).emulate).toEqual({ bytesPerSecond: 1.25e9, latencySeconds: 50e-6 });
  expect(files!["links.json"]).not.toBe(own[0]!.files!["links.json"]);
});
