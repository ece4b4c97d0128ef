import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { topKCompressor } from "@skein/compressors";
import { mlp } from "@skein/models";
import { argmax, cast, chain, equal, scaleByAdam, scaleByLearningRate, stepDecay, sum } from "@skein/tensor-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { checkpointBytes, metricLines, skeinTrain, stepLosses } from "./cli.ts";
import * as modules from "./own-modules.ts";
import { data, model } from "./points.ts";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "skein-objects-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const named = (
  name: "compression" | "metrics" | "optimizer" | "schedule",
  options: Readonly<Record<string, unknown>> = {},
) => ({ kind: "module", file: new URL("./own-modules.ts", import.meta.url), export: name, options }) as const;

const job = {
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 60,
  steps: 8,
  clipNorm: 0.5,
  evaluation: { batch: 16 },
  data,
  model,
} as const;

/** The components of own-modules.ts as objects of a program. */
const objects = {
  optimizer: (context) => modules.optimizer(context, { beta1: 0.8 }),
  learningRate: { peak: 0.05, warmupSteps: 2, schedule: stepDecay({ initial: 0.05, factor: 0.5, every: 4 }) },
  compression: topKCompressor({ density: 0.5 }),
  metrics: {
    rows: ({ logits, batch }) => ({ right: equal(argmax(logits), cast(batch.labels, "i32")) }),
    metrics: { rightShare: { sum: "right", per: "count" } },
  },
} satisfies Partial<TrainJob>;

test("a program's objects do the same on the threads of ranks as in a module, bit for bit, and resume when passed again", async () => {
  const [mine, theirs] = [join(folder, "mine"), join(folder, "theirs")];
  const calls: string[] = [];
  const callbacks = { onStart: () => void calls.push("start"), onEnd: () => void calls.push("end") };
  await train({ ...job, ...objects, callbacks, steps: 3 }, { output: mine });
  const { summary } = await train({ ...job, ...objects, callbacks }, { output: mine, resume: true });
  expect(calls).toEqual(["start", "end", "start", "end"]);
  await train(
    {
      ...job,
      optimizer: named("optimizer", { beta1: 0.8 }),
      learningRate: { peak: 0.05, warmupSteps: 2, schedule: named("schedule") },
      compression: named("compression"),
      metrics: named("metrics"),
    },
    { output: theirs },
  );
  expect(stepLosses(mine)).toEqual(stepLosses(theirs));
  expect(checkpointBytes(mine, 8)).toEqual(checkpointBytes(theirs, 8));
  expect(summary!.metrics).toEqual({ rightShare: summary!.testAccuracy });

  const recordedJob = JSON.parse(readFileSync(join(mine, "job.json"), "utf8")) as TrainJob;
  for (const part of [
    recordedJob.optimizer,
    recordedJob.compression,
    recordedJob.metrics,
    recordedJob.callbacks,
    recordedJob.learningRate.schedule,
  ])
    expect(part).toMatchObject({ kind: "program", digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
  const resumed = await skeinTrain(folder, "resume", "mine");
  expect(resumed.stderr).toMatch(/^data: it was given by a program, .*; call train\(\) there with .* resume: true\n$/);
  // another object makes another job
  const notes: string[] = [];
  await train(
    { ...job, ...objects, callbacks, compression: topKCompressor({ density: 0.25 }), steps: 9 },
    { output: mine, resume: true, onNote: (line) => notes.push(line) },
  );
  expect(notes.join("\n")).toContain("the job differs from the one that wrote the checkpoint");
});

test("factories are called once with the arguments of their modules, and a run given only training parts is evaluated without the program", async () => {
  const output = join(folder, "factories");
  let calls = 0;
  const { summary } = await train(
    {
      ...job,
      steps: 4,
      data: () => data,
      model: (task) => {
        calls++;
        return mlp({ sizes: [...task.inputs.shape, 16, task.classes!] });
      },
      optimizer: ({ learningRate }) => chain(scaleByAdam({}), scaleByLearningRate(learningRate)),
      learningRate: { peak: 0.05, schedule: 0.03 },
      compression: modules.compression,
    },
    { output },
  );
  expect(summary!.testAccuracy).toBeGreaterThan(0);
  expect(calls).toBe(1);
  expect(metricLines(output).find(({ type }) => type === "step")!["learningRate"]).toBeCloseTo(0.03, 6);
});

test.each<[Partial<TrainJob>, RegExp]>([
  [
    { optimizer: modules.optimizer },
    /^train\(\): optimizer: its option beta1 is missing: .*; write \(context\) => yours\(context, \{ beta1: … \}\)$/,
  ],
  [
    { optimizer: modules.metrics as never },
    /^train\(\): optimizer was made by defineMetrics, which is for metrics; give it/,
  ],
  [
    { optimizer: (() => ({ init: 3 })) as never },
    /^train\(\): optimizer returned \{"init":3\}, but must return an optimizer/,
  ],
  [
    {
      optimizer: () => {
        throw new RangeError("not today");
      },
    },
    /^train\(\): optimizer: RangeError: not today \(at \S+own-objects\.test\.ts:\d+:\d+\); correct it there$/,
  ],
  [
    { transport: "tcp" },
    /^train\(\): transport: tcp runs ranks as processes, which cannot have objects of this program/,
  ],
  [
    { buckets: { kind: "mg-wfbp" } },
    /^train\(\): buckets: mg-wfbp plans buckets from measurements, but compression is an object/,
  ],
  [{ compression: { init: () => [] } as never }, /^train\(\): compression: its aggregate is nothing, but must be/],
  [
    { metrics: { rows: sum } as never },
    /^train\(\): metrics returned .*, but must return metrics: an object with rows/,
  ],
  [
    { callbacks: { onStop: () => undefined } as never },
    /^train\(\): callbacks returned "onStop", which is never called/,
  ],
  [
    { learningRate: { peak: 1, schedule: (() => 3) as never } },
    /^train\(\): learningRate\.schedule: the schedule returned 3/,
  ],
  [
    { evaluation: { batch: () => 3 } as never },
    /^train\(\): evaluation contains a function, but it cannot be an object/,
  ],
  [{ zero: 1 }, /zero: ranks would share the optimizer's state, but/],
])("an invalid object gives a one-line error, and nothing is written: %#", async (change, line) => {
  const output = join(folder, "never");
  await expect(train({ ...job, ...objects, ...change } as TrainJob, { output })).rejects.toThrow(line);
  expect(existsSync(output)).toBe(false);
});
