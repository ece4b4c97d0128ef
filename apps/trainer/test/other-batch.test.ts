import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { arrayRecords } from "@skein/data";
import { cast, full, mean, multiply, NdArray, reshape, sum, type Tensor } from "@skein/tensor-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { metricLines } from "./cli.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-batch-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

// Each sample sets a different bit, so that a loss shows which samples a step has processed.
const count = 16;
const samples = arrayRecords({
  inputs: NdArray.from(
    Array.from({ length: count }, (_, i) => 2 ** i),
    [count, 1],
  ),
});
const model = {
  init: () => ({ params: { w: full([], 1) }, state: {} }),
  loss: ({ w }: { w: Tensor }, state: object, { inputs }: { inputs: Tensor }) => [multiply(mean(inputs), w), state],
  evaluate: ({ w }: { w: Tensor }, _: object, { inputs, mask }: { inputs: Tensor; mask: Tensor }) => {
    const counted = cast(mask, "f32");
    return { lossSum: multiply(sum(multiply(reshape(inputs, [-1]), counted)), w), count: sum(counted) };
  },
};
const job = {
  seed: 3,
  ranks: 1,
  backend: "cpu",
  blas: "off",
  data: { train: samples, test: samples, predicts: "own" },
  model,
  optimizer: { kind: "sgd" },
  learningRate: { peak: 1e-14, decay: "linear" },
  evaluation: { batch: 4 },
  checkpoint: { everySteps: 6 },
} as const;

interface Step {
  readonly step: number;
  readonly epoch: number;
  readonly rate: number;
  readonly seen: readonly number[];
}

const run = async (settings: object, output: string, options: object = {}) => {
  const notes: string[] = [];
  const result = await train({ ...job, ...settings } as unknown as TrainJob, {
    output: join(folder, output),
    onNote: (line) => notes.push(line),
    ...options,
  });
  const batchAt = (step: number): number =>
    "batches" in options ? (options.batches as (s: number) => number)(step) : 0;
  const steps = metricLines(join(folder, output))
    .filter(({ type }) => type === "step")
    .map((line): Step => {
      const { step, epoch, loss, learningRate: rate } = line as unknown as Record<string, number>;
      const bits = Math.round(loss! * batchAt(step!));
      return {
        step: step!,
        epoch: epoch!,
        rate: rate!,
        seen: Array.from({ length: count }, (_, i) => i).filter((i) => (bits >> i) & 1),
      };
    });
  return { steps, notes, result };
};

test("position, epochs, end and learning rate follow the samples seen", { timeout: 60_000 }, async () => {
  await run({ batch: 4, epochs: 3 }, "run");
  rmSync(join(folder, "run/checkpoints/step-00000012"), { recursive: true });
  cpSync(join(folder, "run"), join(folder, "again"), { recursive: true });
  for (const [output, batch, total] of [
    ["run", 2, 6 + 12],
    ["again", 8, 6 + 3],
  ] as const) {
    const { steps, notes, result } = await run({ batch, epochs: 3 }, output, {
      resume: true,
      batches: (step: number) => (step <= 6 ? 4 : batch),
    });
    expect([result.step, result.totalSteps]).toEqual([total, total]);
    expect(notes).toContainEqual(
      expect.stringContaining(
        `the job differs from the one that wrote the checkpoint (batch: 4, now ${batch}; model.digest: sha256`,
      ),
    );
    const byEpoch = Map.groupBy(steps, ({ epoch }) => epoch);
    expect([...byEpoch.keys()]).toEqual([1, 2, 3]);
    for (const own of byEpoch.values())
      expect(own.flatMap(({ seen }) => seen).toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: count }, (_, i) => i),
      );
    // Learning rate of the step of an uninterrupted run with this batch size at the same samples.
    const all = (3 * count) / batch;
    for (const { step, rate } of steps.slice(6)) {
      const samplesBefore = 6 * 4 + (step - 7) * batch;
      expect(rate / 1e-14).toBeCloseTo(1 - samplesBefore / batch / all, 5);
    }
  }
});
