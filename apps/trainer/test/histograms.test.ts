import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ParameterHistograms } from "@skein/report";
import { histogramsFile, readHistograms, requestFile, requestHistograms } from "@skein/run-files/node";
import { checkpointHistograms } from "@skein/watch/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { hasAdapter } from "./adapter.ts";
import { checkpointBytes, metricLines, stepLosses } from "./cli.ts";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "skein-histograms-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const job = {
  data: { kind: "mnist", trainSamples: 120, testSamples: 20 },
  model: { kind: "mlp", hidden: [8] },
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 40,
  steps: 5,
  optimizer: { kind: "sgd" },
  learningRate: { peak: 0.1 },
  evaluation: { batch: 20 },
} as const satisfies TrainJob;

/** Trains with histograms after steps 0, 2 and 4. A run without this option must have equal results. */
const taken = async (
  name: string,
  own: Partial<TrainJob> = {},
): Promise<ReadonlyMap<number, readonly ParameterHistograms[]>> => {
  const [plain, watched] = [join(folder, `${name}-plain`), join(folder, name)];
  await train({ ...job, ...own } as TrainJob, { output: plain });
  await train({ ...job, ...own, histograms: { everySteps: 2 } } as TrainJob, { output: watched });
  expect(stepLosses(watched)).toEqual(stepLosses(plain));
  expect(checkpointBytes(watched, 5)).toEqual(checkpointBytes(plain, 5));
  expect(existsSync(join(plain, histogramsFile))).toBe(false);
  expect(readHistograms(watched).steps).toEqual([4, 2, 0]);
  return new Map([0, 2, 4].map((step) => [step, readHistograms(watched, step).shown!.parameters]));
};

/** Returns the norm of all gradients, after each step with histograms. */
const gradientNorms = (found: Awaited<ReturnType<typeof taken>>): number[] =>
  [...found.values()].map((parameters) =>
    Math.sqrt(parameters.reduce((sum, { gradients }) => sum + (gradients?.norm ?? 0) ** 2, 0)),
  );

/** Returns the gradient norms reported with the updates of the same steps. */
const toldNorms = (name: string): number[] => {
  const lines = metricLines(join(folder, name));
  return [1, 3, 5].map((step) =>
    Number(lines.find((line) => line.step === step && line["gradientNorm"] !== undefined)!["gradientNorm"]),
  );
};

const expectCloseTo = (found: readonly number[], expected: readonly number[], share: number): void => {
  expect(found).toHaveLength(expected.length);
  for (const [i, value] of expected.entries()) expect(Math.abs(found[i]! / value - 1)).toBeLessThan(share);
};

test("on a schedule: no bit changes, and the gradients are those of the next update", async () => {
  const found = await taken("schedule");
  expect(
    found.get(0)!.map(({ path, shape, weights, gradients }) => [path, shape, weights.size, gradients?.size]),
  ).toEqual([
    ["layers.0.bias", [8], 8, 8],
    ["layers.0.weight", [784, 8], 6272, 6272],
    ["layers.1.bias", [10], 10, 10],
    ["layers.1.weight", [8, 10], 80, 80],
  ]);
  expect(found.get(0)![0]!.weights).toMatchObject({ zeros: 8, min: 0, max: 0, counts: [8] });
  expectCloseTo(gradientNorms(found), toldNorms("schedule"), 1e-5);
  expect(metricLines(join(folder, "schedule")).filter(({ type }) => type === "histograms")).toHaveLength(3);
});

test("a run answers a request before one of its next steps, once", async () => {
  const output = join(folder, "asked");
  const run = train({ ...job, ranks: 1, steps: 200_000 }, { output });
  let asked = false;
  for await (const event of run) {
    if (event.type === "step" && event.step >= 2 && !asked) {
      requestHistograms(output);
      asked = true;
    }
    if (readHistograms(output).steps.length > 0) break; // stops the run
  }
  const { steps, shown } = readHistograms(output);
  expect(steps).toHaveLength(1);
  expect(shown!.parameters.map(({ path }) => path)).toHaveLength(4);
});

test("an unanswered request ends with its run, and does not reach the next one", async () => {
  const output = join(folder, "left");
  const request = join(output, requestFile);
  const many = { ...job, steps: 4000 } as TrainJob;
  // Ranks check once a second, or after a number of steps: a run that is stopping has no further step in which it
  // checks.
  for (const isResumed of [false, true]) {
    if (isResumed) requestHistograms(output); // as left by a killed run
    const run = train(many, { output, resume: isResumed });
    let first: number | undefined;
    for await (const event of run) {
      if (event.type === "start") first = event.step;
      if (event.type !== "step") continue;
      requestHistograms(output);
      break; // stops the run
    }
    if (isResumed) expect(readHistograms(output).steps).not.toContain(first);
    expect(existsSync(request)).toBe(false);
  }
});

test("of a finished run show the weights of its newest checkpoint", async () => {
  const output = join(folder, "over");
  await train({ ...job, steps: 4, histograms: { everySteps: 2 }, checkpoint: { everySteps: 2, keep: 9 } } as TrainJob, {
    output,
  });
  rmSync(join(output, "checkpoints/step-00000004"), { recursive: true });
  const ofCheckpoint = await checkpointHistograms(output);
  expect(ofCheckpoint.step).toBe(2);
  const weights = readHistograms(output, 2).shown!.parameters.map(({ gradients: _, ...own }) => own);
  expect(ofCheckpoint.parameters.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual(weights);
});

describe("all kinds of steps", { tags: "full" }, () => {
  const gpt = {
    data: { kind: "moby-dick", window: 16, trainSamples: 400, testSamples: 30 },
    model: { kind: "gpt", layers: 2, heads: 4, width: 16 },
    batch: 8,
    evaluation: { batch: 8 },
    optimizer: { kind: "adamw" },
    learningRate: { peak: 0.01 },
  } as const satisfies Partial<TrainJob>;
  const experts = {
    ...gpt,
    model: {
      ...gpt.model,
      experts: { count: 4, capacity: "all", every: 1, gate: "sigmoid" },
    },
  } as unknown as Partial<TrainJob>;

  test.each<[string, Partial<TrainJob>, number]>([
    ["accumulate", { accumulate: 4 }, 1e-5],
    ["dear", { overlap: "dear", buckets: { kind: "fixed-size", bytes: 4096 } }, 1e-5],
    ["top-k", { compression: { kind: "top-k", density: 0.1 } }, 1e-5],
    ["one-bit", { compression: { kind: "one-bit" }, optimizer: { kind: "momentum" } } as never, 1e-5],
    ["f16", { precision: { kind: "mixed-f16" } }, 1e-3],
    ["zero", { zero: 1, optimizer: { kind: "adam" }, ranks: 4 }, 1e-5],
    ["kfac", { optimizer: { kind: "kfac" } }, 1e-5],
    ["processes", { transport: "tcp" }, 1e-5],
    ["tuned", { buckets: { kind: "tuned", trials: 2, stepsEach: 2 } } as never, 1e-5],
  ])("%s", async (name, own, share) => {
    const found = await taken(name, own);
    expectCloseTo(gradientNorms(found), toldNorms(name), share);
  });

  test("frozen parameters have weights, and no gradients", async () => {
    const found = await taken("frozen", { freeze: ["layers.0.*"] });
    expect(found.get(4)!.map(({ path, gradients }) => [path, gradients !== undefined])).toEqual([
      ["layers.0.bias", false],
      ["layers.0.weight", false],
      ["layers.1.bias", true],
      ["layers.1.weight", true],
    ]);
  });

  test.each<[string, Partial<TrainJob>, Partial<TrainJob>]>([
    ["experts", experts, { ranks: 4, mesh: { expert: 2 } }],
    ["tensor", gpt, { ranks: 4, mesh: { tensor: 2 } }],
    ["both", experts, { ranks: 4, mesh: { expert: 2, tensor: 2 } }],
  ])("ranks that shard a model report the same as one rank with all of it: %s", async (name, own, shared) => {
    const one = await taken(`${name}-one`, { ...own, ranks: 1 });
    const mesh = await taken(name, { ...own, ...shared });
    expectCloseTo(gradientNorms(mesh), gradientNorms(one), 1e-3);
    for (const [step, parameters] of one)
      for (const [i, { path, shape, weights, gradients }] of parameters.entries()) {
        const other = mesh.get(step)![i]!;
        expect([other.path, other.shape, other.weights.size, other.gradients?.size]).toEqual([
          path,
          shape,
          weights.size,
          gradients?.size,
        ]);
        expect(other.weights.counts.reduce((a, b) => a + b, 0)).toBe(weights.size);
        if (step === 0)
          expect(other.weights).toEqual({
            ...weights,
            mean: expect.closeTo(weights.mean!, 9),
            norm: expect.closeTo(weights.norm!, 6),
          });
      }
  });

  test.skipIf(!hasAdapter)("on WebGPU", async () => {
    const found = await taken("webgpu", { backend: "webgpu", ranks: 1 });
    expectCloseTo(gradientNorms(found), toldNorms("webgpu"), 1e-4);
  });

  test("a resumed run takes again those it dropped", async () => {
    const output = join(folder, "again");
    const own = { ...job, histograms: { everySteps: 2 }, checkpoint: { everySteps: 3 } } as const;
    await train(own, { output });
    const before = readFileSync(join(output, histogramsFile), "utf8");
    rmSync(join(output, "checkpoints/step-00000005"), { recursive: true });
    await train(own, { output, resume: true });
    expect(readFileSync(join(output, histogramsFile), "utf8")).toBe(before);
  });
});
