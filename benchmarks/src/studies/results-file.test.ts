import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Outcome } from "./outcome.ts";
import { appendResult, readResults, type Result, resultOf, stands, takesOf } from "./results-file.ts";
import { definitionOf, type Run } from "./run.ts";

const run = (name: string): Run => ({
  name,
  job: { name },
  core: true,
  warmUpSteps: 1,
  minutes: 1,
  expected: { seconds: 1, prefix: name },
});
const result = (of: Run, outcome: Outcome): Result => ({
  name: of.name,
  definition: definitionOf(of),
  at: "2026-01-01T00:00:00.000Z",
  machine: "m",
  seed: 1,
  commit: "c",
  seconds: 1,
  job: of.job,
  outcome,
});

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "skein-results-"))));
afterEach(() => rmSync(folder, { recursive: true }));

test("the last result of a run counts; a line cut by an interruption costs only its own run", () => {
  const path = join(folder, "deep/results.jsonl");
  const [a, b, c] = [run("a"), run("b"), run("c")];
  appendResult(path, result(a, { kind: "failed", reason: "first" }));
  appendResult(path, result(a, { kind: "diverged", reason: "second" }));
  appendFileSync(path, JSON.stringify(result(b, { kind: "diverged", reason: "cut" })).slice(0, 40));
  appendResult(path, result(c, { kind: "refused", reason: "after the cut" }));
  const results = readResults(path);
  expect(resultOf(results, a)?.outcome).toEqual({ kind: "diverged", reason: "second" });
  expect(resultOf(results, b)).toBeUndefined();
  expect(resultOf(results, c)?.outcome).toEqual({ kind: "refused", reason: "after the cut" });
  expect(readFileSync(path, "utf8").split("\n")).toHaveLength(5);
});

test("a result does not stand for a run that is defined otherwise now", () => {
  const path = join(folder, "results.jsonl");
  appendResult(path, result(run("a"), { kind: "diverged", reason: "" }));
  expect(resultOf(readResults(path), { ...run("a"), job: { name: "a", seed: 2 } })).toBeUndefined();
  expect(readResults(join(folder, "none.jsonl")).size).toBe(0);
});

test("takes of a run are summed up by the median of their medians, until one begins anew", () => {
  const path = join(folder, "results.jsonl");
  const a = run("a");
  const figures = { testLoss: 1, steps: 9, batch: 4, bytesSentPerStep: 0, denseBytesPerStep: 0, peakMemoryBytes: 0 };
  const took = (median: number, mad: number, take?: number): Result => ({
    ...result(a, {
      kind: "done",
      ...figures,
      stepSeconds: { median, mad, n: 12 },
      exposedSeconds: { median: median / 2, mad: 0, n: 12 },
      cycleSeconds: { median: 2 * median, mad: 0, n: 12 },
      stageSeconds: { rest: { median: 3 * median, mad: 0, n: 12 } },
    }),
    ...(take !== undefined && { take }),
  });
  const times = (): unknown[] => {
    const { outcome } = resultOf(readResults(path), a)!;
    return outcome.kind === "done" ? [outcome.stepSeconds, outcome.exposedSeconds] : [outcome.kind];
  };
  appendResult(path, took(1, 0.25));
  expect(times()[0]).toEqual({ median: 1, mad: 0.25, n: 12 });
  appendResult(path, took(2, 0.25, 1));
  appendResult(path, took(1.25, 0.25, 2));
  expect(takesOf(readResults(path), a)).toHaveLength(3);
  expect(times()).toEqual([
    { median: 1.25, mad: 0.5, n: 36 },
    { median: 0.625, mad: 0.25, n: 36 },
  ]);
  expect(resultOf(readResults(path), a)!.seconds).toBe(3);
  expect(resultOf(readResults(path), a)!.outcome).toMatchObject({
    cycleSeconds: { median: 2.5, mad: 1, n: 36 },
    stageSeconds: { rest: { median: 3.75, mad: 1.5, n: 36 } },
  });
  appendResult(path, took(3, 0.75));
  expect(times()[0]).toEqual({ median: 3, mad: 0.75, n: 12 });
  appendResult(path, { ...result(a, { kind: "failed", reason: "" }), take: 1 });
  expect(times()).toEqual(["failed"]);
});

test("what was refused or failed is tried again, what diverged is not", () => {
  const standing = (outcome: Outcome): boolean => stands(result(run("a"), outcome));
  expect(standing({ kind: "diverged", reason: "" })).toBe(true);
  for (const kind of ["refused", "failed", "too-long"] as const) expect(standing({ kind, reason: "" })).toBe(false);
  expect(stands(undefined)).toBe(false);
});
