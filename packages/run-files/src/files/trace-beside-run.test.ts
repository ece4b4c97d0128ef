import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { linkTraceIntoRun } from "./trace-beside-run.ts";

let folder: string;
let run: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-trace-"));
  run = join(folder, "run");
  mkdirSync(run);
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a trace stored elsewhere is linked in the run's folder, without a copy, and a later one replaces it", () => {
  const path = join(folder, "mine.json");
  writeFileSync(path, "first");
  linkTraceIntoRun(path, run);
  expect(statSync(join(run, "trace.json")).ino).toBe(statSync(path).ino);
  rmSync(path);
  writeFileSync(path, "second");
  linkTraceIntoRun(path, run);
  expect(readFileSync(join(run, "trace.json"), "utf8")).toBe("second");
});

test("a trace in the folder is the only one; anything but an existing file gives none", () => {
  writeFileSync(join(run, "own.json"), "own");
  linkTraceIntoRun(join(run, "own.json"), run);
  linkTraceIntoRun(join(folder, "nowhere.json"), run);
  mkdirSync(join(folder, "no-file"));
  linkTraceIntoRun(join(folder, "no-file"), run);
  linkTraceIntoRun("/dev/null", run);
  expect(readdirSync(run)).toEqual(["own.json"]);
});
