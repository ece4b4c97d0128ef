import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { nameTraceBesideRun } from "./trace-beside-run.ts";

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
  nameTraceBesideRun(path, run);
  expect(statSync(join(run, "trace.json")).ino).toBe(statSync(path).ino);
  rmSync(path);
  writeFileSync(path, "second");
  nameTraceBesideRun(path, run);
  expect(readFileSync(join(run, "trace.json"), "utf8")).toBe("second");
});

test("a trace in the folder is the only one; anything but an existing file gives none", () => {
  writeFileSync(join(run, "own.json"), "own");
  nameTraceBesideRun(join(run, "own.json"), run);
  nameTraceBesideRun(join(folder, "nowhere.json"), run);
  mkdirSync(join(folder, "no-file"));
  nameTraceBesideRun(join(folder, "no-file"), run);
  nameTraceBesideRun("/dev/null", run);
  expect(readdirSync(run)).toEqual(["own.json"]);
});
