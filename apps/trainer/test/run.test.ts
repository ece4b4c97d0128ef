import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkpointNames, jobFolder, metricLines, skeinTrain, stepLosses, reportedUpdates } from "./cli.ts";
import { expectSoundTrace, spansOn } from "./trace-rules.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

test("a run trains, and writes metrics, events, checkpoints and a summary", async () => {
  const { code, stdout, stderr } = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    "--json",
    "--set",
    "evaluation.everyEpochs=1",
    "--",
    "--trace",
    "trace.json",
  );
  expect(stderr).toContain("tiny: 30 steps on 2 ranks, output in runs/tiny/1");
  expect(code).toBe(0);
  const summary = JSON.parse(stdout.trimEnd().split("\n").at(-1)!) as Record<string, number | string>;
  expect(Object.keys(summary)).toEqual([
    "evaluatedOn",
    "testAccuracy",
    "testLoss",
    "backend",
    "samplesPerSecond",
    "exposedShare",
    "dataShare",
    "bytesSentPerRank",
    "denseBytesPerRank",
    "peakMemoryBytes",
    "seconds",
    "checkpoint",
  ]);
  const output = join(folder, "runs/tiny/1");
  expect(summary["checkpoint"]).toBe("runs/tiny/1/checkpoints/step-00000030");
  expect(JSON.parse(readFileSync(join(output, "summary.json"), "utf8"))).toEqual(summary);

  const parameters = 784 * 16 + 16 + 16 * 10 + 10;
  expect(summary["denseBytesPerRank"]).toBe(4 * parameters * 30); // 2 (P − 1) / P = 1 for two ranks
  const sentPerStep = 8 * Math.floor(0.05 * parameters) + 4; // one bucket of (value, position) pairs, plus the loss
  expect(summary["bytesSentPerRank"]).toBe(sentPerStep * 30);

  const lines = metricLines(output);
  expect(lines.filter(({ type }) => type === "step").map(({ step }) => step)).toEqual(
    Array.from({ length: 30 }, (_, i) => i + 1),
  );
  const evaluations = lines.filter(({ type }) => type === "evaluation");
  expect(evaluations.map(({ step }) => step)).toEqual([20, 30]);
  expect(lines[0]).toMatchObject({ type: "step", step: 1, epoch: 1, bytesSent: sentPerStep });
  expect(lines.findLast(({ type }) => type === "step")).toMatchObject({ epoch: 2 });
  for (const name of ["seconds", "samplesPerSecond", "residentBytes", "gradientNorm", "learningRate"])
    expect(lines[0]).toHaveProperty(name);
  expect(evaluations.at(-1)!.accuracy).toBe(summary["testAccuracy"]);
  expect(Math.round((summary["testAccuracy"] as number) * 203)).toBeCloseTo(
    (summary["testAccuracy"] as number) * 203,
    9,
  ); // of 203 digits, without padding
  const losses = stepLosses(output);
  expect(losses[0]).toBeCloseTo(Math.log(10), 0);
  expect(losses.at(-1)).toBeLessThan(0.9 * losses[0]!);

  expect(checkpointNames(output)).toEqual(["step-00000010", "step-00000020", "step-00000030"]);
  expect(readdirSync(join(output, "checkpoints/step-00000030")).sort()).toEqual([
    "manifest.json",
    "rank-0.safetensors",
    "rank-1.safetensors",
    "shared.safetensors",
  ]);
  expect(readdirSync(output).filter((name) => name.startsWith("events.out.tfevents."))).toHaveLength(1);
  const events = expectSoundTrace(join(folder, "trace.json"), 2);
  const steps = spansOn(events, 1, "steps");
  expect(steps.map(({ name }) => name)).toEqual(Array.from({ length: 20 }, (_, i) => `step ${i + 1}`));
  // The reported waiting time of each step must be the sum of its waits for collectives.
  for (const step of steps) {
    const inside = spansOn(events, 1, "waiting").filter(
      ({ ts, dur }) => ts >= step.ts && ts + dur <= step.ts + step.dur,
    );
    const waited = inside.reduce((total, { dur }) => total + dur, 0) / 1000;
    expect(step.args["exposedMilliseconds"]).toBeGreaterThan(0);
    expect(step.args["exposedMilliseconds"]).toBeLessThanOrEqual(waited + 0.01 * inside.length);
  }
  const payload = 8 * Math.floor(0.05 * parameters);
  const exchange = {
    operator: "all-gather",
    scope: "exchange-0",
    shape: `u32[${payload / 4}]`,
    elements: payload / 4,
    bytes: payload,
    resultBytes: 2 * payload,
  };
  expect(spansOn(events, 1, /^collectives/).find(({ name }) => name === "all-gather exchange-0")?.args).toEqual({
    ...exchange,
    axis: "data",
    ranks: [0, 1],
    priority: 0,
    algorithm: "exchange",
  });
});

test("the same job gives the same losses, bit for bit; another seed does not", async () => {
  const run = async (output: string, ...args: string[]): Promise<number[]> => {
    expect(
      (await skeinTrain(folder, "run", "job.yaml", "--quiet", "--steps", "8", "--output", output, ...args)).code,
    ).toBe(0);
    return stepLosses(join(folder, output));
  };
  const [first, second, other] = [await run("a"), await run("b"), await run("c", "--set", "seed=4")];
  expect(second).toEqual(first);
  expect(other).not.toEqual(first);
});

// Dense, so that both runs sum the same gradients; only the order of the f32 additions differs.
test("2 ranks × 32 samples give the losses and gradient norms of 1 rank × 64, within 1e-4", async () => {
  const run = async (ranks: string): Promise<number[]> => {
    const { code, stderr } = await skeinTrain(
      folder,
      "run",
      "job.yaml",
      "--ranks",
      ranks,
      "--output",
      ranks,
      "--set",
      "batch=64",
      "--set",
      "compression={kind: identity}",
    );
    expect(stderr).not.toContain("error");
    expect(code).toBe(0);
    const output = join(folder, ranks);
    return [...stepLosses(output), ...reportedUpdates(output).map(({ gradientNorm }) => gradientNorm)];
  };
  const [alone, together] = [await run("1"), await run("2")];
  expect(together).toHaveLength(60);
  together.forEach((value, i) => expect(Math.abs(value - alone[i]!)).toBeLessThan(1e-4 * alone[i]!));
});

test("--quiet prints only the summary", async () => {
  const { code, stdout, stderr } = await skeinTrain(folder, "run", "job.yaml", "--quiet", "--steps", "2");
  expect(stderr).toBe(""); // not even the warning that the warm-up covers the whole run
  expect(stdout).toMatch(/^test accuracy {2}\d+\.\d\d %\n/);
  expect(code).toBe(0);
});

test("a language model reports bits per byte", async () => {
  const small = [
    "--set",
    "data={kind: moby-dick, window: 16, trainSamples: 64, testSamples: 10}",
    "--set",
    "model={kind: gpt, layers: 1, heads: 2, width: 16}",
    "--set",
    "evaluation.batch=4",
  ];
  const { code, stdout, stderr } = await skeinTrain(folder, "run", "job.yaml", "--json", "--steps", "3", ...small);
  expect(stderr).toContain("learningRate.decay: cosine has no effect: the warm-up of 5 steps covers all 3 of the run");
  expect(code).toBe(0);
  const summary = JSON.parse(stdout) as {
    testLoss: number;
    bitsPerByte: number;
    perplexity: number;
    testAccuracy?: number;
  };
  expect(summary.testAccuracy).toBeUndefined();
  expect(stderr).toMatch(/step 3: test loss [\d.]+, [\d.]+ bits per byte, perplexity [\d.]+\n/);
  expect(stderr).not.toContain("% right");
  expect(Math.log2(summary.perplexity)).toBeCloseTo(summary.bitsPerByte, 9);
  expect(summary.bitsPerByte).toBeCloseTo(summary.testLoss / Math.log(2), 12);
  expect(summary.bitsPerByte).toBeGreaterThan(6); // after three steps, near the uniform distribution over 256 bytes
  expect(summary.bitsPerByte).toBeLessThan(8.2);
});
