import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { arrayRecords } from "@skein/data";
import { mlp } from "@skein/models";
import { flattenTree, NdArray } from "@skein/tensor-core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { metricLines } from "./cli.ts";

// With f16, a step whose gradients overflow makes no update. Actions of the first update, or of every n-th update,
// count updates: a run that skips its first steps must have the result of a run without these steps.

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-skipped-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const batch = 16;
/** @param size Upper bound of the absolute values of the inputs. */
const samplesOf = (size: number): ReturnType<typeof arrayRecords> =>
  arrayRecords({
    inputs: NdArray.from(
      Array.from({ length: batch * 4 }, (_, i) => size * Math.sin(i * 1.3)),
      [batch, 4],
    ),
    labels: NdArray.from(
      Array.from({ length: batch }, (_, i) => i % 3),
      [batch],
      "i32",
    ),
  });
const samples = samplesOf(1);

const job = {
  data: { train: samples, test: samples, predicts: "classes", classes: 3 },
  model: mlp({ sizes: [4, 6, 3] }),
  ranks: 1,
  backend: "cpu",
  threads: 1,
  batch,
  evaluation: { batch },
  learningRate: { peak: 0.05 },
} as const;

const run = async (
  name: string,
  settings: object,
  options: object = {},
): Promise<{ readonly values: readonly number[]; readonly skipped: number }> => {
  const output = join(folder, name);
  const done = await train({ ...job, ...settings } as unknown as TrainJob, { output, ...options });
  const leaves = flattenTree<NdArray>(done.parameters()).leaves;
  const steps = metricLines(output).filter(({ type }) => type === "step");
  return {
    values: leaves.flatMap((leaf) => leaf.toNumbers()),
    skipped: steps.filter(({ gradientNorm }) => gradientNorm === undefined).length,
  };
};

const scaled = (initialScale: number): object => ({ precision: { kind: "mixed-f16", initialScale } });
const numSteps = 16;

describe("a run that skips its first updates gives the result of a run without those steps", () => {
  test.each<[string, object]>([
    ["a running mean", { optimizer: { kind: "sgd" }, average: { decay: 0.99 } }],
    ["K-FAC", { optimizer: { kind: "kfac", size: "free", inverseEvery: 3, factorEvery: 3 } }],
    ["SOAP", { optimizer: { kind: "soap", basesEvery: 3 } }],
    ["Shampoo", { optimizer: { kind: "shampoo", rootsEvery: 3 } }],
  ])("%s", async (_, settings) => {
    const late = await run("late", { ...settings, ...scaled(2 ** 26), steps: numSteps });
    expect(late.skipped).toBeGreaterThan(4);
    const clean = await run("clean", { ...settings, ...scaled(1024), steps: numSteps - late.skipped });
    expect(clean.skipped).toBe(0);
    // A batch with all samples in another order, so that sums are rounded differently.
    late.values.forEach((value, i) => expect(value).toBeCloseTo(clean.values[i]!, 4));
  });

  test("also if it stops among the skipped steps, and after them, and resumes from checkpoints", async () => {
    const settings = { optimizer: { kind: "kfac", size: "free", inverseEvery: 3, factorEvery: 3 }, ...scaled(2 ** 26) };
    const whole = await run("whole", { ...settings, steps: 14 });
    await run("pieces", { ...settings, steps: 3 });
    await run("pieces", { ...settings, steps: 10 }, { resume: true });
    const pieces = await run("pieces", { ...settings, steps: 14 }, { resume: true });
    expect(pieces.values).toEqual(whole.values);
  });
});

test("the default scale does not skip the first step with activations that are not small", async () => {
  const large = samplesOf(30);
  const { skipped } = await run("large", {
    data: { ...job.data, train: large, test: large },
    optimizer: { kind: "sgd" },
    precision: { kind: "mixed-f16" },
    steps: 3,
  });
  expect(skipped).toBe(0);
});
