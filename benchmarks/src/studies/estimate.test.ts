import { expect, test } from "vitest";
import { estimateSeconds, formatDuration } from "./estimate.ts";
import type { Outcome } from "./outcome.ts";
import { addResult, type Result, type Results } from "./results-file.ts";
import type { Run } from "./run.ts";

const run = (name: string): Run => ({
  name,
  job: {},
  core: true,
  warmUpSteps: 0,
  minutes: 1,
  expected: { seconds: 100, prefix: name.split("/")[0]! },
});
const made = (name: string, seconds: number, kind = "done"): Result =>
  ({ name, definition: `of ${name}`, seconds, outcome: { kind } as Outcome }) as Result;

test("a run takes as long as it did, else as runs like it did, else as expected", () => {
  const results: Results = new Map();
  for (const result of [made("a/x", 10), made("a/y", 30), made("a/y", 20, "failed"), made("ab/x", 500)])
    addResult(results, result);
  const of = (...names: string[]): number => estimateSeconds(names.map(run), results);
  expect(of("a/x")).toBe(10);
  expect(of("a/z")).toBe(10); // the failed take replaced a/y's earlier take, and does not count
  expect(of("b/x")).toBe(100);
  expect(of("a/x", "b/x", "ab/z")).toBe(610);
});

test("durations have the unit that suits them", () => {
  expect([20, 150, 5400].map(formatDuration)).toEqual(["20 s", "3 min", "1.5 h"]);
});
