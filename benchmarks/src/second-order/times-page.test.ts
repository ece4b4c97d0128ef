import { expect, test } from "vitest";
import { madePage } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import { baseline } from "./methods.ts";
import { stageRules } from "./stages.ts";
import { timesPage } from "./times-page.ts";
import { cycle, planTimes, type TimesRun } from "./times-plan.ts";

const runs = planTimes({ quick: false, seeds: [1] });

const summary = (median: number, mad = 0): { median: number; mad: number; n: number } => ({ median, mad, n: 40 });

/**
 * Returns an outcome whose median step is as long as a step of momentum, and whose mean step over a cycle takes
 * `seconds`.
 */
const done = (seconds: number, peakMebibytes = 100): Extract<Outcome, { kind: "done" }> => ({
  kind: "done",
  testLoss: 1,
  steps: 45,
  batch: 64,
  bytesSentPerStep: 3072,
  denseBytesPerStep: 3072,
  stepSeconds: summary(0.02),
  cycleSeconds: summary(seconds, 0.001),
  peakMemoryBytes: peakMebibytes * 2 ** 20,
});

const pageOf = (outcomeOf: (run: TimesRun) => Outcome | undefined): ReturnType<typeof madePage> =>
  madePage(timesPage, runs, outcomeOf);

const rowsOf = (page: string, first: string): string[][] =>
  page
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .filter((cells) => cells[1] === first);

test("each place has momentum first, and all runs of a place follow each other", () => {
  const places = runs.filter(({ kind }) => kind === "timed").map(({ task, ranks }) => `${task.name}/${ranks}`);
  expect(places.filter((place, i) => place !== places[i - 1])).toHaveLength(new Set(places).size);
  for (const [, own] of Map.groupBy(runs, ({ task, ranks }) => `${task.name}/${ranks}`))
    expect(own[0]!.method.name).toBe(baseline);
  expect(new Set(runs.map(({ name }) => name)).size).toBe(runs.length);
  for (const { job, ranks } of runs) expect((job["batch"] as number) % ranks).toBe(0);
});

test("steps that count are whole cycles, and those of a trace are among its twenty", () => {
  for (const { job, warmUpSteps, kind } of runs) {
    expect(((job["steps"] as number) - warmUpSteps) % cycle).toBe(0);
    if (kind === "traced") expect(job["steps"]).toBeLessThanOrEqual(20);
  }
});

test("whatever is done seldom is done once in a cycle", () => {
  const every = runs.flatMap(({ job }) => {
    const optimizer = job["optimizer"] as Readonly<Record<string, unknown>>;
    return Object.entries(optimizer).flatMap(([key, value]) => (key.endsWith("Every") ? [value] : []));
  });
  expect([...new Set(every)]).toEqual([cycle]);
});

test("a mean step is set beside momentum's, and what takes longer than wanted is said to", () => {
  const seconds: Readonly<Record<string, number>> = { momentum: 0.02, eva: 0.021, kfac: 0.05, soap: 0.04 };
  const { page, plots } = pageOf(({ task, ranks, method, kind }) =>
    task.name === "mnist-cnn" && ranks === 4 && kind === "timed" && seconds[method.name] !== undefined
      ? done(seconds[method.name]!, method.name === "kfac" ? 150 : 100)
      : undefined,
  );
  expect(page.split("\n").slice(0, 5)).toEqual([
    "![all](x.svg)",
    "",
    "Times a step of momentum, median over tasks and numbers of ranks: eva 1.05 (1.05 to 1.05), kfac 2.50 (2.50 to 2.50).",
    "Wanted is at most eva 1.10, muon 1.15, kfac 1.50, kfac-256 1.50, kfac-whole 1.50: that holds in 1 of 30 places, 28 more are not known, and is missed by kfac 2.50 (mnist-cnn on 4).",
    "Of the others, of which nothing is wanted: soap 2.00 (2.00 to 2.00).",
  ]);
  expect(rowsOf(page, "kfac")[0]!.slice(2, 9)).toEqual([
    "50.0 ± 1.00 (40)",
    "**2.50**",
    "1.50: **missed**",
    "20.0",
    "150",
    "1.50",
    "3.0",
  ]);
  expect(rowsOf(page, "eva")[0]!.slice(3, 5)).toEqual(["1.05", "1.10: held"]);
  expect(rowsOf(page, "momentum")[0]![3]).toBe("1.00");
  expect(page).toContain("- mnist-cnn on 4: kfac takes 2.50 times a step of momentum; at most 1.50 is wanted.");
  expect(plots[0]!.rows.map(({ label, solid, limit }) => [label, solid, limit])).toEqual([
    ["eva", true, 1.1],
    ["soap", true, undefined],
    ["kfac", false, 1.5],
  ]);
});

test("without momentum nothing is judged, and what failed is told", () => {
  const { page } = pageOf(({ task, ranks, method, kind }) =>
    task.name !== "mnist-cnn" || ranks !== 1 || kind !== "timed"
      ? undefined
      : method.name === "eva"
        ? done(1)
        : method.name === "lamb"
          ? { kind: "failed", reason: "no memory" }
          : undefined,
  );
  expect(page.startsWith("Times a step of momentum, median over tasks and numbers of ranks: none is known yet.")).toBe(
    true,
  );
  expect(rowsOf(page, "eva")[0]!.slice(3, 5)).toEqual(["–", "1.10"]);
  expect(page).toContain("- mnist-cnn/1-ranks/lamb/timed: failed: no memory.");
});

test("stages of a traced step are shares of their sum", () => {
  const { page } = pageOf(({ task, ranks, method, kind }) =>
    task.name === "mnist-cnn" && ranks === 1 && method.name === "kfac" && kind === "traced"
      ? {
          ...done(1),
          stageSeconds: {
            passes: summary(0.02),
            factors: summary(0.008),
            precondition: summary(0.002),
            update: summary(0.004),
            rest: summary(0.006),
          },
        }
      : undefined,
  );
  expect(rowsOf(page, "mnist-cnn, 1 rank")[0]!.slice(2, -1)).toEqual([
    "kfac",
    "40.0",
    "50.0",
    "20.0",
    "–",
    "15.0",
    "–",
    "–",
    "–",
    "–",
    "15.0",
  ]);
});

test.each([
  ["compute update matmul statistics/dense1.weight", "factors"],
  ["waiting communication reduce statistics-12", "factorCommunication"],
  ["compute communication slice statistics-2", "factorCommunication"],
  ["compute update cholesky update/inverse/dense1.weight", "inverses"],
  ["compute update eigh update", "inverses"],
  ["waiting broadcast update/inverses-1", "inverseCommunication"],
  ["waiting broadcast update/bases-0", "inverseCommunication"],
  ["compute update matmul update/precondition/dense1.weight", "precondition"],
  ["host broadcast update/preconditioned-3", "preconditionedCommunication"],
  ["waiting broadcast update/orthogonal-0", "preconditionedCommunication"],
  ["waiting all-reduce exchange-0", "gradientCommunication"],
  ["compute backward matmul dense-1/backward", "passes"],
  ["compute update fused update", "update"],
  ["waiting all-reduce mean-loss", undefined],
])("%s is of the stage %s", (span, stage) => {
  expect(stageRules.find(({ matches }) => new RegExp(matches).test(span))?.stage).toBe(stage);
});
