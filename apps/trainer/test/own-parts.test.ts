import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkpointsFolder, folderName } from "@skein/checkpoints/node";
import { type NdArray, readSafetensors } from "@skein/tensor-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { metricLines, stepLosses } from "./cli.ts";
import { data, model } from "./points.ts";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "skein-parts-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const named = (name: "compression" | "metrics" | "optimizer" | "schedule") =>
  ({ kind: "module", file: new URL("./own-modules.ts", import.meta.url), export: name }) as const;

const job = {
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 60,
  steps: 12,
  accumulate: 3,
  average: { decay: 0.9 },
  clipNorm: 0.5,
  evaluation: { batch: 16 },
  data,
  model,
} as const;

const tensorsOf = (output: string, step: number): ReadonlyMap<string, NdArray> =>
  readSafetensors(readFileSync(join(checkpointsFolder(output), folderName(step), "shared.safetensors"))).tensors;

test("a user's optimizer, schedule, exchange and metrics match the built-in ones bit for bit, and resume after a stop", async () => {
  const own = {
    optimizer: { ...named("optimizer"), options: { beta1: 0.8 } },
    learningRate: { peak: 0.05, warmupSteps: 2, schedule: named("schedule") },
    compression: named("compression"),
    metrics: named("metrics"),
  } satisfies Partial<TrainJob>;
  const [mine, ours] = [join(folder, "own"), join(folder, "named")];
  await train({ ...job, ...own, steps: 5 }, { output: mine });
  const { summary } = await train({ ...job, ...own }, { output: mine, resume: true });
  await train(
    {
      ...job,
      optimizer: { kind: "adam", beta1: 0.8 },
      learningRate: { peak: 0.05, warmupSteps: 2, decay: "step", factor: 0.5, everySteps: 4 },
      compression: { kind: "top-k", density: 0.5 },
    },
    { output: ours },
  );
  expect(stepLosses(mine)).toEqual(stepLosses(ours));
  const rates = (output: string) =>
    metricLines(output)
      .filter(({ type }) => type === "step")
      .map(({ learningRate }) => learningRate);
  expect(rates(mine)).toEqual(rates(ours));
  expect(new Set(rates(mine)).size).toBeGreaterThan(3);
  for (const [path, array] of tensorsOf(ours, 12))
    if (/^(params|average)\./.test(path)) expect(tensorsOf(mine, 12).get(path)).toEqual(array);

  const line = metricLines(mine).find(({ type }) => type === "evaluation") as unknown as Readonly<
    Record<string, unknown>
  >;
  expect(line).toMatchObject({ rightShare: line["accuracy"], accuracy: expect.any(Number) });
  expect(summary!.metrics).toEqual({ rightShare: summary!.testAccuracy });
});

test.each<[Partial<TrainJob>, RegExp]>([
  [
    { optimizer: { kind: "module", file: "nowhere.ts" } },
    /^optimizer\.file \S+nowhere\.ts cannot be loaded: .*nowhere\.ts/,
  ],
  [
    { optimizer: { ...named("optimizer"), options: { beta1: 2 } } },
    /^train\(\): optimizer\.options\.beta1 is 2: .*; change it$/,
  ],
  [
    { metrics: named("schedule") },
    /^metrics\.file \S+: its export "schedule" was made by defineSchedule, which is for learningRate\.schedule/,
  ],
  [{ zero: 1 }, /^zero: ranks would share the optimizer's state, but/],
  [{ learningRate: { peak: 1, decay: "cosine" } }, /train\(\): learningRate\.decay: decay: cosine and a schedule both/],
  [
    { learningRate: { peak: 1, schedule: "metrics.ts" as never } },
    /^train\(\): learningRate\.schedule is "metrics\.ts"/,
  ],
])("an invalid user part gives a one-line error, and nothing is written: %#", async (change, line) => {
  const output = join(folder, "never");
  const own = {
    optimizer: { ...named("optimizer"), options: { beta1: 0.8 } },
    learningRate: { peak: 1, schedule: named("schedule") },
  };
  const learningRate = { ...own.learningRate, ...change.learningRate };
  await expect(train({ ...job, ...own, ...change, learningRate } as TrainJob, { output })).rejects.toThrow(line);
  expect(existsSync(output)).toBe(false);
});

test("ranks shard the state of a user's elementwise optimizer, with the same results and files as without sharding", async () => {
  const own = {
    optimizer: { ...named("optimizer"), export: "byElement" },
    learningRate: { peak: 0.05 },
    ranks: 3,
    evaluation: { batch: 15 },
  };
  const [shared, whole] = [join(folder, "shared"), join(folder, "unshared")];
  await train({ ...job, ...own, accumulate: 1, steps: 4, zero: 1 }, { output: shared });
  await train({ ...job, ...own, accumulate: 1, steps: 4 }, { output: whole });
  stepLosses(shared).forEach((loss, step) => expect(loss).toBeCloseTo(stepLosses(whole)[step]!, 5));
  for (const [path, array] of tensorsOf(whole, 4)) {
    const other = tensorsOf(shared, 4).get(path)!;
    expect(other.shape).toEqual(array.shape);
    other.toNumbers().forEach((value, i) => expect(value).toBeCloseTo(array.toNumbers()[i]!, 5));
  }
});
