import { readdirSync } from "node:fs";
import { join } from "node:path";
import { examples } from "@skein/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RunForecast } from "../src/dry-run/forecast-run.ts";
import { jobFolder, metricLines, skeinTrain } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

test("a dry run predicts the steps and bytes of the actual run, and writes nothing", async () => {
  const { code, stdout } = await skeinTrain(folder, "run", "job.yaml", "--dry-run", "--json", "--output", "out");
  expect(code).toBe(0);
  expect(readdirSync(folder)).toEqual(["job.yaml"]);
  const foreseen = JSON.parse(stdout) as RunForecast;

  const parameters = 784 * 16 + 16 + 16 * 10 + 10;
  expect(foreseen).toMatchObject({ parameters, steps: 30, stepsPerEpoch: 20, trainSamples: 640, judgedSamples: 203 });
  // AdamW has two numbers per parameter, and two counters. Top-k has a residual.
  expect(foreseen.memory).toMatchObject({ parameters: 4 * parameters, gradients: 4 * parameters });
  expect(foreseen.memory.optimizer).toBe(8 * parameters + 8);
  expect(foreseen.memory.other).toBeGreaterThanOrEqual(4 * parameters);
  expect(foreseen.denseBytesPerStep).toBe(4 * parameters);
  expect(foreseen.runSeconds).toBe(30 * foreseen.prediction.computeSeconds);
  expect(foreseen.prediction.stepSeconds).toBeUndefined(); // compute time on threads was not measured

  expect((await skeinTrain(folder, "run", "job.yaml", "--output", "out", "--quiet")).code).toBe(0);
  const steps = metricLines(join(folder, "out")).filter(({ type }) => type === "step");
  expect(steps).toHaveLength(foreseen.steps);
  for (const step of steps) expect(step).toMatchObject({ bytesSent: foreseen.sentBytesPerStep });
  const again = await skeinTrain(folder, "run", "job.yaml", "--dry-run", "--output", "out");
  expect(again).toMatchObject({ code: 2, stdout: "" });
  expect(again.stderr).toContain("the folder already holds a run");
});

test("accumulated gradients with a delayed update are predicted, too", {
  tags: "full",
}, async () => {
  const own = ["overlap=dear", "compression={kind: identity}", "batch=36"].flatMap((value) => ["--set", value]);
  const foreseen = async (parts: number): Promise<RunForecast> =>
    JSON.parse(
      (await skeinTrain(folder, "run", "job.yaml", "--dry-run", "--json", ...own, "--set", `accumulate=${parts}`))
        .stdout,
    ) as RunForecast;
  const [inOne, inThree] = [await foreseen(1), await foreseen(3)];
  expect(inThree.sentBytesPerStep).toBe(inOne.sentBytesPerStep);
  expect(
    (await skeinTrain(folder, "run", "job.yaml", "--output", "out", "--quiet", ...own, "--set", "accumulate=3")).code,
  ).toBe(0);
  const steps = metricLines(join(folder, "out")).filter(({ type }) => type === "step");
  for (const step of steps) expect(step).toMatchObject({ bytesSent: inThree.sentBytesPerStep });
});

test("a dry run reports errors of a job as a run does", async () => {
  for (const fault of ["data.trainSamples=8", "batch=999", "learningRate.peak=-1"].slice(0, examples(1, 3))) {
    const [dry, real] = [
      await skeinTrain(folder, "run", "job.yaml", "--set", fault, "--dry-run"),
      await skeinTrain(folder, "run", "job.yaml", "--set", fault),
    ];
    expect(dry).toEqual(real);
    expect(dry.code).toBe(2);
  }
});
