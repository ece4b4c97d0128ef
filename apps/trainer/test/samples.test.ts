import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openLoneBackend } from "../src/backend/lone-backend.ts";
import { generateText } from "../src/generate/generate-text.ts";
import { openTextModel } from "../src/generate/text-model.ts";
import { train } from "../src/index.ts";
import { type SamplesLine, samplesFile } from "../src/samples/samples-file.ts";
import { checkpointBytes, metricLines, stepLosses } from "./cli.ts";

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

test("samples that are shown leave training as it is, and all of them together have the accuracy of the run", async () => {
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
    expect(samples.every((one) => one.kind === "classes" && one.probability > 0 && one.probability <= 1)).toBe(true);
  }
});

test("a text is continued as generate continues it, beside how it goes on", async () => {
  const output = join(folder, "text");
  const file = join(folder, "alphabet.txt");
  writeFileSync(file, "abcdefgh".repeat(300)); // learnt in a few steps, and no two letters in a row are the same
  await train(
    {
      data: { kind: "text", file, window: 16, trainSamples: 60, testSamples: 9 },
      model: { kind: "gpt", layers: 1, heads: 1, width: 16 },
      backend: "cpu",
      ranks: 1,
      batch: 20,
      steps: 60,
      optimizer: { kind: "adam" },
      learningRate: { peak: 0.03 },
      evaluation: { batch: 9, samples: 2 },
    },
    { output },
  );
  const [line] = linesOf(output) as Samples[];
  const texts = line!.samples.flatMap((one) => (one.kind === "text" ? [one] : []));
  expect(texts.map(({ prompt, truth }) => [prompt.length, truth.length])).toEqual([
    [8, 8],
    [8, 8],
  ]);
  for (const { prompt, truth } of texts) expect("abcdefgh".repeat(3)).toContain(prompt + truth);
  const { backend, close } = await openLoneBackend({ backend: "cpu", blas: "off" });
  try {
    for (const { prompt, continuation } of texts) {
      expect(new Set(continuation).size).toBeGreaterThan(1);
      const asked = { prompt, tokens: 8, temperature: 0, seed: 0, count: 1 };
      expect(await generateText(await openTextModel(output), asked, backend)).toEqual([continuation]);
    }
  } finally {
    await close();
  }
});
