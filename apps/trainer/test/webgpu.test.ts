import { join } from "node:path";
import { MetricFiles } from "@skein/run-files/node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readJob } from "../src/job-file/load-job.ts";
import { Interruption } from "../src/processes/interruption.ts";
import { runWithRestarts } from "../src/controller/run-with-restarts.ts";
import { prepare } from "../src/preparation/prepare.ts";
import type { RankRunner } from "../src/controller/rank-runner.ts";
import { threadRunner } from "../src/controller/thread-runner.ts";
import { faultyRank } from "./faulty-rank.ts";
import { expectSoundTrace } from "./trace-rules.ts";
import { hasAdapter } from "./adapter.ts";
import { checkpointBytes, checkpointNames, jobFolder, metricLines, skeinTrain, stepLosses } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const set = (...values: string[]): string[] => values.flatMap((value) => ["--set", value]);
const run = async (output: string, ...args: string[]): Promise<number[]> => {
  const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--quiet", "--output", output, ...args);
  expect(stderr.split("\n").filter((line) => line !== "" && !line.startsWith("Warning: max"))).toEqual([]);
  expect(code).toBe(0);
  return stepLosses(join(folder, output));
};

const expectClose = (actual: readonly number[], expected: readonly number[], tolerance: number): void => {
  expect(actual).toHaveLength(expected.length);
  actual.forEach((loss, i) =>
    expect(Math.abs(loss - expected[i]!), `step ${i + 1}: ${loss} and ${expected[i]}`).toBeLessThan(tolerance),
  );
};

describe.skipIf(!hasAdapter)("a job on WebGPU", () => {
  const expectLossesOfCpu = async (_: string, args: readonly string[], tolerance = 1e-3): Promise<void> => {
    const onCpu = await run("cpu", ...args);
    // Sums are computed in a different order, and each training step passes the difference on to the next step.
    expectClose(await run("webgpu", ...args, "--set", "backend=webgpu"), onCpu, tolerance);
  };
  test.each([["an MLP, two ranks, top-k with error feedback", ["--steps", "20"]]])(
    "has the losses of the CPU: %s",
    expectLossesOfCpu,
  );
  test("has the losses of the CPU: a GPT", { tags: "full" }, () =>
    expectLossesOfCpu(
      "a GPT",
      set(
        "data={kind: moby-dick, window: 32, trainSamples: 200, testSamples: 20}",
        "model={kind: gpt, layers: 2, heads: 2, width: 32}",
        "compression={kind: identity}",
        "batch=8",
        "evaluation.batch=10",
        "ranks=1",
      ).concat("--steps", "10"),
    ),
  );
  test("has the losses of the CPU: a CNN", { tags: "full" }, () =>
    expectLossesOfCpu(
      "a CNN",
      set("model={kind: cnn, channels: [4, 8], hidden: 16}", "compression={kind: identity}", "ranks=1").concat(
        "--steps",
        "10",
      ),
    ),
  );

  const secondOrder: readonly (readonly [string, string])[] = [
    ["Eva", "{kind: eva}"],
    ["K-FAC, inverses shared out", "{kind: kfac, form: spd, factorEvery: 1, inverseEvery: 2, blockSize: 32}"],
    ["Eva-f", "{kind: eva-f}"],
    ["Eva-s", "{kind: eva-s}"],
    ["K-FAC, eigenvectors", "{kind: kfac, inverse: eigen, factorEvery: 1, inverseEvery: 2, blockSize: 16}"],
    ["Shampoo", "{kind: shampoo, rootsEvery: 2, blockSize: 16}"],
    ["SOAP", "{kind: soap, basesEvery: 2, largestSide: 32}"],
    ["Muon", "{kind: muon}"],
    ["LARS", "{kind: lars, coefficient: 0.1}"],
    ["LAMB", "{kind: lamb}"],
  ];
  const secondOrderJob = (optimizer: string): string[] =>
    set(
      `optimizer=${optimizer}`,
      "model.hidden=[24, 16]",
      "compression={kind: identity}",
      "learningRate={peak: 0.01}",
    ).concat("--steps", "5");
  // If eigenvalues are equal, such as zeros at the start, eigenvectors are arbitrary, and SOAP's Adam depends on the
  // eigenvectors.
  test.each(secondOrder)("has the losses of the CPU: %s", { tags: "full" }, (name, optimizer) =>
    expectLossesOfCpu(name, secondOrderJob(optimizer), name === "SOAP" ? 1e-2 : undefined),
  );

  test("merges gradients by measurement, with the losses of the CPU without merging", { tags: "full" }, async () => {
    const dense = set("compression={kind: identity}", "model.hidden=[24, 16]").concat("--steps", "10");
    const onCpu = await run("cpu", ...dense);
    const { code, stderr } = await skeinTrain(
      folder,
      "run",
      "job.yaml",
      "--output",
      "planned",
      "--trace",
      "trace.json",
      ...dense,
      ...set("backend=webgpu", "buckets={kind: mg-wfbp}"),
    );
    expect(stderr).toMatch(/6 gradients in \d buckets?; an all-reduce takes .* expected exposed communication/);
    expect(code).toBe(0);
    expectClose(stepLosses(join(folder, "planned")), onCpu, 1e-3);
    expectSoundTrace(join(folder, "trace.json"), 2);
  });

  test("is the same bit for bit when run again", { tags: "full" }, async () => {
    const args = ["--set", "backend=webgpu", "--set", "checkpoint.keep=10"];
    await run("whole", ...args);
    await run("again", ...args);
    expect(checkpointBytes(join(folder, "again"), 30)).toEqual(checkpointBytes(join(folder, "whole"), 30));
  });

  // By default, the test of a lost device covers resuming from a checkpoint.
  test("resumes", { tags: "full" }, async () => {
    await run("half", "--set", "backend=webgpu", "--set", "checkpoint.keep=10", "--steps", "10");
    expect((await skeinTrain(folder, "resume", "half", "--steps", "30")).code).toBe(0);
    expect(checkpointNames(join(folder, "half"))).toContain("step-00000030");
  });

  test("in mixed precision trains like f32", async () => {
    const mixed = set("precision={kind: mixed-f16}", "ranks=1", "compression={kind: identity}");
    const losses = await run("mixed", ...mixed, "--set", "backend=webgpu");
    expectClose(losses, await run("single", ...mixed.slice(2)), 5e-2);
    expect(losses).not.toEqual(stepLosses(join(folder, "single")));
  });

  test("resumes from the last checkpoint by itself when the device is lost", async () => {
    const job = readJob(join(folder, "job.yaml"), [
      { path: ["backend"], value: "webgpu", origin: "test" },
      { path: ["ranks"], value: 1, origin: "test" },
    ]);
    const notes: string[] = [];
    const output = join(folder, "lost");
    const { mkdirSync } = await import("node:fs");
    const loseDevice = (step: number): RankRunner =>
      threadRunner(faultyRank({ kind: "lose-device", rank: 0, step, mark: join(folder, `lost-at-${step}`) }));
    const launchTo = async (path: string, runner: RankRunner, maxRestarts?: number): Promise<void> => {
      mkdirSync(path, { recursive: true });
      const metrics = new MetricFiles(path, 0);
      try {
        const progress = {
          update: () => undefined,
          note: (line: string) => void notes.push(line),
          close: () => undefined,
        };
        await runWithRestarts({
          prepared: await prepare(job),
          output: path,
          runner,
          interruption: new Interruption(),
          metrics,
          progress,
          maxRestarts,
        });
      } finally {
        metrics.close();
      }
    };
    await launchTo(output, loseDevice(17));
    expect(notes.filter((line) => line.includes("was lost"))).toEqual([
      expect.stringMatching(/rank 0: the WebGPU device .* was lost .*going on from .*step-00000010 \(restart 1 of 3\)/),
    ]);
    await launchTo(join(folder, "left-alone"), threadRunner());
    expect(checkpointBytes(output, 30)).toEqual(checkpointBytes(join(folder, "left-alone"), 30));
    expect(
      metricLines(output)
        .filter(({ type }) => type === "step")
        .map(({ step }) => step),
    ).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));

    await expect(launchTo(join(folder, "given-up"), loseDevice(3), 0)).rejects.toThrow(/was lost/);
  });

  test("doctor lists adapter, features, rates and the choice of auto", async () => {
    const { code, stdout } = await skeinTrain(folder, "doctor", "job.yaml");
    expect(code).toBe(0);
    for (const text of [
      "products",
      "shader-f16: o",
      "subgroups: o",
      "timestamp-query: o",
      "chromium-experimental-subgroup-matrix: o",
      "job tiny",
      "auto would choose",
      "the job sets backend: cpu",
    ])
      expect(stdout).toContain(text);
    const json = JSON.parse((await skeinTrain(folder, "doctor", "job.yaml", "--json")).stdout) as {
      job: { choice: { seconds: { cpu: number; webgpu: number } } };
    };
    expect(json.job.choice.seconds.cpu).toBeGreaterThan(0);
    expect(json.job.choice.seconds.webgpu).toBeGreaterThan(0);
  });
});

test("mixed precision on the CPU trains like f32, and an overflow skips the step and halves the scale", async () => {
  const mixed = set("precision={kind: mixed-f16, initialScale: 1073741824}", "ranks=1", "compression={kind: identity}");
  const { code, stdout, stderr } = await skeinTrain(folder, "run", "job.yaml", "--json", "--output", "mixed", ...mixed);
  expect(code).toBe(0);
  expect(stderr).toContain("gradients overflowed f16; the update was skipped, and the loss scale was halved");
  const { skippedSteps } = JSON.parse(stdout) as { skippedSteps: number };
  expect(skippedSteps).toBeGreaterThan(0);
  expect(skippedSteps).toBeLessThan(20);
  const losses = stepLosses(join(folder, "mixed"));
  expect(losses.at(-1)).toBeLessThan(0.95 * losses[0]!);
});

describe("without an adapter", () => {
  const hidden = { VK_DRIVER_FILES: "/nonexistent", VK_ICD_FILENAMES: "/nonexistent" };
  beforeEach(() => void Object.assign(process.env, hidden));
  afterEach(() => {
    for (const name of Object.keys(hidden)) delete process.env[name];
  });

  test("a job that requires WebGPU reports what is missing, auto uses the CPU and says so, doctor gives the reason", async () => {
    const refused = await skeinTrain(folder, "run", "job.yaml", "--set", "backend=webgpu", "--output", "refused");
    expect(refused.stderr).toMatch(/WebGPU found no adapter; install a Vulkan driver/);
    expect(refused.code).toBe(1);
    const auto = await skeinTrain(
      folder,
      "run",
      "job.yaml",
      "--set",
      "backend=auto",
      "--steps",
      "3",
      "--output",
      "auto",
    );
    expect(auto.stderr).toMatch(/^backend cpu: (this machine has no GPU|WebGPU found no adapter)/m);
    expect(auto.code).toBe(0);
    const doctor = await skeinTrain(folder, "doctor", "job.yaml");
    expect(doctor.stdout).toContain("auto would choose cpu: WebGPU found no adapter");
    expect(doctor.code).toBe(0);
  });
});
