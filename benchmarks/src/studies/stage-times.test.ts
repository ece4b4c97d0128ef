import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type StageRule, stageTimes } from "./stage-times.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "skein-stages-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const rules: readonly StageRule[] = [
  { stage: "sending", matches: "factors-\\d" },
  { stage: "factors", matches: "factors" },
  { stage: "update", matches: "^compute update" },
];

interface Made {
  readonly pid?: number;
  readonly args?: object;
}

const span = (name: string, cat: string, ts: number, dur: number, { pid = 0, args }: Made = {}): object => ({
  name,
  cat,
  ph: "X",
  pid,
  tid: 1,
  ts: 1e6 * ts,
  dur: 1e6 * dur,
  ...(args && { args }),
});

/** Writes a trace in the trainer's format. Returns its path. */
const traceOf = (events: readonly object[]): string => {
  const path = join(folder, "trace.json");
  const lines = events.map((event) => JSON.stringify(event)).join(",\n");
  writeFileSync(path, `{"displayTimeUnit":"ms","otherData":{},"traceEvents":[\n${lines}\n]}\n`);
  return path;
};

test("the first rule that matches names the stage, and stages add up to the step", () => {
  const [first, second] = stageTimes(
    traceOf([
      { name: "process_name", ph: "M", pid: 0 },
      span("step 1", "steps", 0, 10),
      span("matmul factors/a", "compute", 1, 2, { args: { phase: "update", operator: "matmul", scope: "factors/a" } }),
      span("all-reduce factors-0", "collectives", 2, 7, { args: { scope: "factors-0" } }),
      span("wait all-reduce factors-0", "waiting", 3, 4, { args: { scope: "factors-0" } }),
      span("matmul", "compute", 8, 1, { args: { phase: "update", operator: "matmul" } }),
      span("evaluate after step 1", "host", 10, 5),
      span("step 2", "steps", 15, 2),
    ]),
    rules,
  );
  expect([...first!]).toEqual([
    ["factors", 2],
    ["sending", 4],
    ["update", 1],
    ["rest", 3],
  ]);
  expect([...second!]).toEqual([["rest", 2]]);
});

test("of several ranks it is the mean, and what is compiled within a step is left out once", () => {
  const args = { phase: "update", operator: "matmul" };
  const [only] = stageTimes(
    traceOf([
      span("step 1", "steps", 0, 10),
      span("compile train step", "host", 1, 6),
      span("compile for cpu", "host", 2, 3),
      span("matmul", "compute", 7, 2, { args }),
      span("step 1", "steps", 100, 4, { pid: 1 }),
      span("matmul", "compute", 101, 1, { pid: 1, args }),
    ]),
    rules,
  );
  expect(Object.fromEntries(only!)).toEqual({ update: 1.5, rest: 2.5 });
});
