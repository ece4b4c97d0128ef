import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gpt } from "@skein/models";
import { afterEach, beforeEach, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { checkpointBytes, metricLines } from "./cli.ts";
import { ownDerivatives } from "./own-derivatives.ts";
import { data, model } from "./points.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-program-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const job = {
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 30,
  steps: 12,
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.01 },
  compression: { kind: "top-k", density: 0.5 },
  evaluation: { batch: 16 },
  checkpoint: { everySteps: 4 },
} as const;

test("objects of a program are trained like those that a job names, bit for bit; stopped and resumed, too", async () => {
  const whole = await train({ ...job, data, model }, { output: join(folder, "whole") });
  expect(whole).toMatchObject({ step: 12, totalSteps: 12, summary: { backend: "cpu" } });

  await train({ ...job, data, model: { kind: "mlp", hidden: [16] } }, { output: join(folder, "named") });
  expect(checkpointBytes(join(folder, "named"), 12)).toEqual(checkpointBytes(join(folder, "whole"), 12));

  const stop = new AbortController();
  stop.abort();
  await expect(train({ ...job, data, model }, { output: join(folder, "never"), signal: stop.signal })).rejects.toThrow(
    "abort",
  );
  expect(existsSync(join(folder, "never"))).toBe(false);

  const early = await train({ ...job, steps: 4, data, model }, { output: join(folder, "parts"), resume: true });
  expect(early.step).toBe(4);
  const losses: number[] = [];
  const late = await train(
    { ...job, data, model },
    { output: join(folder, "parts"), resume: true, onStep: ({ loss }) => void losses.push(loss) },
  );
  expect(losses).toHaveLength(8);
  expect(checkpointBytes(join(folder, "parts"), 12)).toEqual(checkpointBytes(join(folder, "whole"), 12));

  const { layers } = late.parameters();
  expect(layers.map(({ weight }) => weight.shape)).toEqual([
    [2, 16],
    [16, 2],
  ]);
  expect(layers[0]!.weight.toNumbers()).toEqual(whole.parameters().layers[0]!.weight.toNumbers());
});

test("a stop that is requested while the job is still being checked is not lost", async () => {
  const stop = new AbortController();
  const run = train({ ...job, data, model }, { output: join(folder, "at-once"), signal: stop.signal });
  stop.abort();
  await expect(run).rejects.toThrow("stopped before the first step; nothing was trained");
  expect(existsSync(join(folder, "at-once"))).toBe(false);
});

test("an error of an asynchronous onStep stops the run, saves it, and is thrown", async () => {
  const output = join(folder, "async");
  const steps: number[] = [];
  const onStep = async ({ step }: { readonly step: number }): Promise<void> => {
    steps.push(step);
    throw new Error("mine");
  };
  // TypeScript accepts a function that returns a promise in place of one that returns nothing
  await expect(train({ ...job, steps: 2000, data, model }, { output, onStep })).rejects.toThrow("mine");
  expect(steps).toEqual([1]);
  expect(existsSync(join(output, "checkpoints"))).toBe(true);
});

test("a model with a custom derivative, operator and dropout gives the same bits as in a module", async () => {
  const mean = { ...job, compression: undefined };
  await train({ ...mean, data, model: ownDerivatives() }, { output: join(folder, "object") });
  const file = new URL("./own-derivatives.ts", import.meta.url);
  await train(
    { ...mean, data, model: { kind: "module", file, export: "ownDerivatives" } },
    { output: join(folder, "module") },
  );
  expect(checkpointBytes(join(folder, "object"), 12)).toEqual(checkpointBytes(join(folder, "module"), 12));
});

test("optimizers that inspect layers find them in a program's model, as in a named one", { tags: "full" }, async () => {
  for (const optimizer of [{ kind: "kfac", factorEvery: 2, inverseEvery: 4 }, { kind: "muon" }] as const) {
    const { kind } = optimizer;
    await train({ ...job, optimizer, data, model }, { output: join(folder, `${kind}-object`) });
    await train(
      { ...job, optimizer, data, model: { kind: "mlp", hidden: [16] } },
      { output: join(folder, `${kind}-named`) },
    );
    expect(checkpointBytes(join(folder, `${kind}-object`), 12)).toEqual(
      checkpointBytes(join(folder, `${kind}-named`), 12),
    );
  }
});

test("samples of a named data set are cut once, also where the model is an object", async () => {
  const text = join(folder, "text.txt");
  writeFileSync(text, "To be, or not to be, that is the question. ".repeat(40));
  const named = { kind: "text", file: text, window: 16, validationFraction: 0.25, trainSamples: 60 } as const;
  const bytes = gpt({ contextLength: 16, width: 8, numLayers: 1, numHeads: 2 });
  const settings = { ...job, compression: undefined, batch: 4, steps: 2, evaluation: { batch: 4 } };
  await train({ ...settings, data: named, model: bytes }, { output: join(folder, "object") });
  await train(
    { ...settings, data: named, model: { kind: "gpt", layers: 1, heads: 2, width: 8 } },
    { output: join(folder, "named") },
  );
  const metrics = ["object", "named"].map((name) =>
    metricLines(join(folder, name)).map(({ type, loss }) => ({ type, loss })),
  );
  expect(metrics[0]).toEqual(metrics[1]);
});

test.each<[Partial<TrainJob>, object, RegExp]>([
  [
    { transport: "tcp" },
    {},
    /^train\(\): transport: tcp runs ranks as processes, which cannot have objects of this program/,
  ],
  [{ batch: 31 }, {}, /^train\(\): batch: 31 samples are not divisible by 2 ranks/],
  [{ batch: 3000 }, {}, /^batch: 3000 samples cannot be drawn from 120/],
  [{ steps: undefined }, {}, /^train\(\): neither epochs nor steps is given/],
  [{ model: { kind: "gpt" } }, {}, /^model\.kind: a gpt predicts the next token/],
  [{ model: { kind: "cnn" } }, {}, /^model\.kind: a cnn needs images .*f32\[2\]/],
  [{ model: undefined as never }, {}, /^train\(\): model is undefined, but must be/],
  [{ data: { kind: "text", file: "no-such.txt" } }, {}, /^\S+no-such\.txt cannot be read/],
  [{}, { resume: true }, /^train\(\): resume needs the folder/],
  [{ optimzer: {} } as never, {}, /^train\(\): unknown key "?optimzer"?; did you mean "optimizer"\?/],
])("an invalid job of a program gives a one-line error, and nothing is written: %#", async (change, options, line) => {
  const output = join(folder, "run");
  await expect(
    train({ ...job, data, model, ...change } as TrainJob, "resume" in options ? { resume: true } : { output }),
  ).rejects.toThrow(line);
  expect(existsSync(output)).toBe(false);
});
