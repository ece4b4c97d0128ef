import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SweepFile } from "../src/sweep/sweep-file.ts";
import { disturbed, jobFolder, skeinTrain, start, until } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const sweepIn = (output: string): SweepFile =>
  JSON.parse(readFileSync(join(folder, output, "sweep.json"), "utf8")) as SweepFile;

const small = ["--ranks", "1", "--set", "compression={kind: identity}", "--set", "learningRate.decay=constant"];

test("a grid is tried on held-out samples, a failure counts as the worst, and the best is reported", async () => {
  const grid = ["--grid", "optimizer={kind: sgd}", "--grid", "learningRate.peak=0.05,1e33,0.0001"];
  const args = ["sweep", "job.yaml", ...small, ...grid, "--steps", "10", "--output", "out", "--parallel", "2"];
  const { code, stdout, stderr } = await skeinTrain(folder, ...args);
  expect(stderr).toContain("data.validationFraction: 0.1 of the training samples are held back for evaluation");
  expect(stderr).toMatch(/trial 2: .*failed, and counts as the worst: .*loss is not finite/);
  expect(code).toBe(0);
  const { trials } = sweepIn("out");
  expect(trials.map(({ state }) => state)).toEqual(["finished", "failed", "finished"]);
  expect(trials[0]!.loss).toBeLessThan(trials[2]!.loss!);
  const lines = stdout.split("\n");
  expect(lines.slice(1, 4).map((line) => Number(line.trim().split(/\s/)[0]))).toEqual([1, 3, 2]);
  expect(stdout).toMatch(
    /run job\.yaml .*--ranks 1.* --set 'optimizer=\{"kind":"sgd"\}' --set learningRate\.peak=0\.05\n/,
  );

  const job = JSON.parse(readFileSync(join(folder, "out/trial-001/job.json"), "utf8")) as { data: object };
  expect(job.data).toMatchObject({ validationFraction: 0.1 });
  const page = readFileSync(join(folder, "out/sweep.html"), "utf8");
  expect(page).toContain("learningRate.peak=0.05");
  expect(page.slice(page.indexOf("<body>"), page.lastIndexOf("<script>"))).not.toMatch(/undefined|https?:/);

  // All trials are done: the result is reported again, and no trial runs.
  const again = await skeinTrain(folder, ...args);
  expect(again.stderr).toContain("3 are done already");
  expect(again.stdout).toBe(stdout);
  const other = await skeinTrain(folder, ...args, "--set", "seed=9");
  expect(other.stderr).toContain("--output out: the sweep there has another value of the job; continue with");
  expect(other.code).toBe(2);
});

test("a Bayesian sweep that was stopped during its trials ends like an uninterrupted one", {
  tags: "full",
}, async () => {
  const random = ["--random", "learningRate.peak=log:1e-4..1e-1", "--search", "bayes", "--trials", "3"];
  const args = ["sweep", "job.yaml", ...small, ...random, "--parallel", "2", "--steps", "200"];
  const running = start(folder, ...args, "--output", "stopped");
  await until(running, () => existsSync(join(folder, "stopped/trial-002/metrics.jsonl")));
  running.child.kill("SIGINT");
  const { code, stderr } = await disturbed(running);
  expect(stderr).toMatch(/stopped with \d of 3 trials done; repeat the same command to continue/);
  expect(code).toBe(130);
  expect((await skeinTrain(folder, ...args, "--output", "stopped")).code).toBe(0);
  expect((await skeinTrain(folder, ...args, "--output", "whole")).code).toBe(0);
  const learnt = (output: string) => sweepIn(output).trials.map(({ seconds: _, ...trial }) => trial);
  expect(learnt("whole")).toHaveLength(3);
  expect(learnt("stopped")).toEqual(learnt("whole"));
});

test("an invalid trial is reported before the first one, by its location, and nothing is written", async () => {
  for (const [args, message] of [
    [
      ["--grid", "learningRate.peak=0.1,-1"],
      "--grid learningRate.peak=-1: learningRate.peak is -1, but must be above 0",
    ],
    [["--random", "batch=int:2..9", "--trials", "0"], '--trials is "0", but must be a whole number from 1'],
  ] as const) {
    const { code, stderr } = await skeinTrain(folder, "sweep", "job.yaml", "--output", "out", ...args);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
    expect(existsSync(join(folder, "out"))).toBe(false);
  }
});
