import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { newestRun } from "./newest-run.ts";

/** Creates a folder of runs, each with its modification time and its files. */
const folderOf = (runs: Readonly<Record<string, readonly [seconds: number, ...files: readonly string[]]>>): string => {
  const folder = mkdtempSync(join(tmpdir(), "skein-runs-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [path, [seconds, ...files]] of Object.entries(runs)) {
    mkdirSync(join(folder, path), { recursive: true });
    for (const file of files) {
      writeFileSync(join(folder, path, file), "");
      utimesSync(join(folder, path, file), seconds, seconds);
    }
  }
  return folder;
};
const both = ["job.json", "metrics.jsonl"] as const;

test("of the runs below a folder, the last modified one, whatever its name or number", async () => {
  const folder = folderOf({ "a/1": [100, ...both], "a/2": [300, ...both], "b/9": [200, ...both] });
  expect(await newestRun(folder)).toBe(join(folder, "a/2"));
  expect(await newestRun(join(folder, "b"))).toBe(join(folder, "b/9"));
});

test("a folder that is a run is used, whatever is below it", async () => {
  const folder = folderOf({ run: [100, ...both], "run/more/1": [300, ...both] });
  expect(await newestRun(join(folder, "run"))).toBe(join(folder, "run"));
});

test("a run that is still training is not resumed by accident; one whose process is gone, or that has ended, is", async () => {
  const folder = folderOf({ "a/1": [100, ...both], "a/2": [300, ...both] });
  const tell = (facts: object): void =>
    writeFileSync(join(folder, "a/2/provenance.json"), JSON.stringify({ host: hostname(), ...facts }));
  tell({ pid: process.pid });
  await expect(newestRun(folder)).rejects.toThrow(
    /2 is the run that was written to last, .* still training; .* skein-train resume .*2$/,
  );
  expect(await newestRun(join(folder, "a/2"))).toBe(join(folder, "a/2"));
  tell({ pid: process.pid, ended: { how: "stopped" } });
  expect(await newestRun(folder)).toBe(join(folder, "a/2"));
  tell({ pid: spawnSync(process.execPath, ["--version"]).pid });
  expect(await newestRun(folder)).toBe(join(folder, "a/2"));
});

test("a run that cannot be resumed, for lack of a job, is skipped; without any run the folder itself is returned, for the error message", async () => {
  const folder = folderOf({ "a/1": [100, ...both], "a/2": [300, "metrics.jsonl"], "none/x": [100, "job.json"] });
  expect(await newestRun(folder)).toBe(join(folder, "a/1"));
  expect(await newestRun(join(folder, "none"))).toBe(join(folder, "none"));
  expect(await newestRun(join(folder, "absent"))).toBe(join(folder, "absent"));
});
