import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Manifest } from "@skein/checkpoints/node";
import { gpt } from "@skein/models";
import { samplesFile, type SamplesLine } from "@skein/run-files/node";
import { type OwnModel, taskOf } from "@skein/step/node";
import type { NdArray } from "@skein/tensor-core";
import { readSamples } from "@skein/watch/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSingleRankBackend } from "../src/backend/single-rank-backend.ts";
import { generateText } from "../src/generate/generate-text.ts";
import { openTextModel } from "../src/generate/text-model.ts";
import { train } from "../src/index.ts";
import { checkpointBytes, metricLines, stepLosses } from "./cli.ts";
import { autoencoder, pairData, plainData, towers } from "./own-trees.ts";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "skein-samples-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Samples = Extract<SamplesLine, { readonly type: "samples" }>;

const linesOf = (output: string): SamplesLine[] =>
  readFileSync(join(output, samplesFile), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as SamplesLine);

const job = {
  data: { kind: "mnist", trainSamples: 120, testSamples: 33 },
  model: { kind: "mlp", hidden: [8] },
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 60,
  steps: 6,
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.01 },
} as const;

test("showing samples leaves training unchanged, and all of them together have the accuracy of the run", async () => {
  const [plain, shown] = [join(folder, "plain"), join(folder, "shown")];
  const evaluation = { everySteps: 3, batch: 20 };
  await train({ ...job, evaluation }, { output: plain });
  await train({ ...job, evaluation: { ...evaluation, samples: 64 } }, { output: shown });
  expect(stepLosses(shown)).toEqual(stepLosses(plain));
  expect(checkpointBytes(shown, 6)).toEqual(checkpointBytes(plain, 6));
  const [images, ...lines] = linesOf(shown) as [Extract<SamplesLine, { readonly type: "images" }>, ...Samples[]];
  expect(Object.keys(images.images)).toHaveLength(33);
  const { width, height, channels, bytes } = images.images[7]!;
  expect([width, height, channels, Buffer.from(bytes, "base64").length]).toEqual([28, 28, 1, 784]);
  expect(lines.map(({ type, step }) => [type, step])).toEqual([
    ["samples", 3],
    ["samples", 6],
  ]);
  const evaluations = metricLines(shown).filter(({ type }) => type === "evaluation");
  for (const [i, { samples }] of lines.entries()) {
    const right = samples.filter((one) => one.kind === "classes" && one.predicted === one.label);
    expect(right.length / samples.length).toBeCloseTo(Number(evaluations[i]!["accuracy"]), 6);
    expect(
      samples.every((one) => one.kind === "classes" && Number(one.probability) > 0 && Number(one.probability) <= 1),
    ).toBe(true);
  }
});

const own = (name: string) =>
  ({ kind: "module", file: new URL("./own-trees.ts", import.meta.url), export: name }) as const;

const treeJob = {
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 24,
  steps: 4,
  evaluation: { everySteps: 2, batch: 16, samples: 3 },
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.02 },
} as const;

test("of samples without labels all inputs and outputs are recorded, for a module's model and a program's alike", async () => {
  const [module, program] = [join(folder, "tree-module"), join(folder, "tree-program")];
  await train({ ...treeJob, data: own("pairData"), model: own("towers") }, { output: module });
  const notes: string[] = [];
  await train({ ...treeJob, data: pairData, model: towers }, { output: program, onNote: (line) => notes.push(line) });
  expect(linesOf(program)).toEqual(linesOf(module));
  expect(notes.join()).not.toContain("no samples");
  const { evaluations, images } = readSamples(program);
  expect(images).toEqual({});
  expect(evaluations.map(({ step, samples }) => [step, samples.map(({ index }) => index)])).toEqual([
    [4, [3, 10, 17]],
    [2, [3, 10, 17]],
  ]);
  const [sample] = evaluations[0]!.samples;
  expect(sample).toMatchObject({
    kind: "tree",
    given: {
      "inputs.document": { dtype: "f32", shape: [6] },
      "inputs.query.kind": { dtype: "i32", shape: [], first: [0] },
      "inputs.query.vector": { dtype: "f32", shape: [6], first: { length: 6 } },
    },
    made: { document: { shape: [8], first: { length: 8 } }, query: { shape: [8], first: { length: 8 } } },
  });
});

test("outputs that are a single tensor are computed with the saved parameters", async () => {
  const output = join(folder, "autoencoder");
  const { parameters } = await train({ ...treeJob, data: plainData, model: autoencoder }, { output });
  const [inward, outward] = parameters() as Record<"weight" | "bias", NdArray>[];
  const dense = (layer: Record<"weight" | "bias", NdArray>, inputs: readonly number[]): number[] =>
    layer.bias.toNumbers().map((bias, j, { length }) => {
      const column = layer.weight.toNumbers().filter((_, i) => i % length === j);
      return inputs.reduce((sum, value, i) => sum + value * column[i]!, bias);
    });
  const { evaluations } = readSamples(output);
  const samples = evaluations[0]!.samples.flatMap((one) => (one.kind === "tree" ? [one] : []));
  expect(samples).toHaveLength(3);
  for (const { given, made } of samples) {
    const restored = dense(outward!, dense(inward!, given["numbers"]!.first as number[]));
    made["outputs"]!.first.forEach((value, i) => expect(value).toBeCloseTo(restored[i]!, 5));
  }
});

test("samples shown from a program's model do not affect its run", async () => {
  const [shown, plain] = [join(folder, "program-shown"), join(folder, "program-plain")];
  const program = { ...treeJob, data: plainData, model: autoencoder };
  await train(program, { output: shown });
  await train({ ...program, evaluation: { everySteps: 2, batch: 16 } }, { output: plain });
  expect(checkpointBytes(plain, 4)).toEqual(checkpointBytes(shown, 4));
  const [one, other] = [plain, shown].map(
    (output) => JSON.parse(readFileSync(join(output, "checkpoints/step-00000004/manifest.json"), "utf8")) as Manifest,
  );
  expect(one!.jobHash).toBe(other!.jobHash);
});

test.each<[string, Partial<OwnModel>, RegExp]>([
  ["apply", { apply: undefined as never }, /its apply is nothing, .* forward pass; define apply\(.*remove evaluation/],
  ["row", { apply: (params) => [params, {}] as never }, /returns as "0.bias" f32\[2\], .* must be \[1, …\]/],
])("a model without the required function is refused before the run begins: no %s", async (_, part, line) => {
  const output = join(folder, "refused");
  const whole = await autoencoder(taskOf(await plainData({})), {});
  const model = { ...whole, ...part } as OwnModel;
  await expect(train({ ...treeJob, data: plainData, model }, { output })).rejects.toThrow(line);
  expect(existsSync(output)).toBe(false);
});

test("a text is continued as generate continues it, beside the true continuation", async () => {
  const output = join(folder, "text");
  const file = join(folder, "alphabet.txt");
  writeFileSync(file, "abcdefgh".repeat(300)); // learned in a few steps, because each letter determines the next
  const text = {
    data: { kind: "text", file, window: 16, trainSamples: 60, testSamples: 9 },
    backend: "cpu",
    ranks: 1,
    batch: 20,
    steps: 60,
    optimizer: { kind: "adam" },
    learningRate: { peak: 0.03 },
    evaluation: { batch: 9, samples: 2 },
  } as const;
  await train({ ...text, model: { kind: "gpt", layers: 1, heads: 1, width: 16 } }, { output });
  const [line] = linesOf(output) as Samples[];
  const texts = line!.samples.flatMap((one) => (one.kind === "text" ? [one] : []));
  expect(texts.map(({ prompt, truth }) => [prompt.length, truth.length])).toEqual([
    [8, 8],
    [8, 8],
  ]);
  for (const { prompt, truth } of texts) expect("abcdefgh".repeat(3)).toContain(prompt + truth);
  const { backend, close } = await openSingleRankBackend({ backend: "cpu", blas: "off" });
  try {
    for (const { prompt, continuation } of texts) {
      expect(new Set(continuation).size).toBeGreaterThan(1);
      const asked = { prompt, tokens: 8, temperature: 0, seed: 0, count: 1 };
      expect(await generateText(await openTextModel(output), asked, backend)).toEqual([continuation]);
    }
  } finally {
    await close();
  }
  const functions = gpt({ vocabulary: 256, contextLength: 16, width: 16, numLayers: 1, numHeads: 1 });
  const program = join(folder, "text-program");
  await train({ ...text, model: functions }, { output: program });
  expect(linesOf(program)).toEqual(linesOf(output));
});
