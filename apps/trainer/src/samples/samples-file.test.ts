import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { arrayRecords } from "@skein/data";
import { longestSide, type SampleOutput, samplesFile } from "@skein/run-files/node";
import type { DataSet } from "@skein/step/node";
import { type DType, dtypes, NdArray } from "@skein/tensor-core";
import { readSamples } from "@skein/watch/node";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSamplesFile, SamplesFile } from "./samples-file.ts";
import { spreadSamples } from "./sample-outputs.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-samples-file-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/** Two images of 2 × 1 pixels with three channels. */
const images = arrayRecords({
  inputs: NdArray.from([-1, 0, 1, 0, 0, 0, 5, 5, 5, 5, 5, 5], [2, 1, 2, 3]),
  labels: NdArray.from([0, 1], [2], "i32"),
});
const data: DataSet = { train: images, test: images, predicts: "classes", classes: 2 };
const bytes: DataSet = { train: images, test: images, predicts: "bytes" };
const job = { data: { kind: "mnist" } } as never;
const output = (index: number, predicted: number): SampleOutput => ({
  kind: "classes",
  index,
  label: 0,
  predicted,
  probability: 0.75,
});

test("samples are spaced evenly, none twice, and are all if there are no more", () => {
  fc.assert(
    fc.property(fc.nat(1000), fc.integer({ min: 1, max: 64 }), (count, wanted) => {
      const indices = spreadSamples(count, wanted);
      expect(indices).toHaveLength(Math.min(count, wanted));
      expect(new Set(indices).size).toBe(indices.length);
      const ends = [-1, ...indices, count];
      const gaps = ends.slice(1).map((end, i) => end - ends[i]!);
      expect(Math.max(...gaps)).toBeLessThanOrEqual(Math.ceil(count / Math.min(wanted, count || 1)) + 1);
    }),
  );
});

test("recorded samples are read, newest first; images once, scaled from black to white", async () => {
  const file = await openSamplesFile(folder, 0, job, data, 2);
  for (const step of [3, 6]) file.record(step, [output(0, step), output(1, 1)]);
  const { evaluations, images: shown } = readSamples(folder);
  expect(evaluations.map(({ step, samples }) => [step, samples])).toEqual(
    [6, 3].map((step) => [step, [output(0, step), output(1, 1)]]),
  );
  expect(Object.entries(shown).map(([index, image]) => [index, [...Buffer.from(image.bytes, "base64")]])).toEqual([
    ["0", [0, 128, 255, 128, 128, 128]],
    ["1", [0, 0, 0, 0, 0, 0]], // all pixels are equal
  ]);
  expect(shown["0"]).toMatchObject({ width: 2, height: 1, channels: 3 });
});

test("a resumed run drops later samples, keeps the images, and skips damaged lines", async () => {
  const first = await openSamplesFile(folder, 0, job, data, 2);
  for (const step of [3, 6, 9]) first.record(step, [output(0, step)]);
  appendFileSync(join(folder, samplesFile), '{"type":"samples","step":12,"sam');
  const second = await openSamplesFile(folder, 6, job, data, 2);
  second.record(9, [output(0, 90)]);
  appendFileSync(join(folder, samplesFile), '{"type":"samples","step":"x"}\nnull\n[]\n{"type":"samples","step":12');
  const { evaluations, images: shown } = readSamples(folder);
  expect(evaluations.map(({ step }) => step)).toEqual([9, 6, 3]);
  expect(evaluations[0]!.samples).toEqual([output(0, 90)]);
  expect(Object.keys(shown)).toEqual(["0", "1"]);
});

test("every image of a sample is given under its path, except invalid or too large ones", async () => {
  const count = 2;
  const zeros = (shape: readonly number[], dtype: DType = "u8"): NdArray => NdArray.zeros(dtype, [count, ...shape]);
  const trees = arrayRecords({
    pair: [zeros([2, 3, 1]), { photo: zeros([4, 1, 3], "f32") }],
    empty: zeros([0, 5, 3]),
    long: zeros([longestSide + 1, 1, 1]),
    other: zeros([2, 3, 2]),
    vast: zeros([1024, 1024, 1]),
    vector: zeros([3]),
  });
  const own: DataSet = { train: trees, test: trees, predicts: "own" };
  (await openSamplesFile(folder, 0, job, own, 2)).record(1, []);
  const { images: shown } = readSamples(folder);
  expect(Object.keys(shown)).toEqual(["0.pair.0", "0.pair.1.photo", "1.pair.0", "1.pair.1.photo"]);
  expect(shown["1.pair.1.photo"]).toMatchObject({ width: 1, height: 4, channels: 3 });
});

const anyNumber = fc.oneof(fc.double(), fc.constantFrom(Number.NaN, Infinity, -Infinity));
const excerpts = fc.dictionary(
  fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor")),
  fc.record({ dtype: fc.constantFrom(...dtypes), shape: fc.array(fc.nat()), first: fc.array(anyNumber) }),
);
const anyOutput: fc.Arbitrary<SampleOutput> = fc.oneof(
  fc.record({
    kind: fc.constant("classes" as const),
    index: fc.nat(),
    label: fc.nat(),
    predicted: fc.integer(),
    probability: anyNumber,
  }),
  fc.record({
    kind: fc.constant("values" as const),
    index: fc.nat(),
    label: fc.array(anyNumber),
    predicted: fc.array(anyNumber),
  }),
  fc.record({ kind: fc.constant("tree" as const), index: fc.nat(), given: excerpts, made: excerpts }),
);

/** Converts a number as JSON does: −0 loses its sign, and non-finite numbers become strings such as `NaN`. */
const asTold = (_: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isFinite(value) ? String(value) : value;

test("whatever numbers a model outputs, its samples are read back", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyOutput, { maxLength: 4 }), async (outputs) => {
      rmSync(join(folder, samplesFile), { force: true });
      new SamplesFile(folder, 0, job, { predicts: "own", images: {} }).record(1, outputs);
      const { evaluations } = readSamples(folder);
      expect(evaluations).toEqual([{ step: 1, samples: JSON.parse(JSON.stringify(outputs, asTold)) }]);
    }),
  );
});

test("a text is given as text, or as token numbers without a tokenizer", async () => {
  const text: SampleOutput = { kind: "text", index: 0, prompt: [72, 105], truth: [33], continuation: [63] };
  (await openSamplesFile(folder, 0, job, bytes, 1)).record(1, [text]);
  (await openSamplesFile(folder, 1, job, { ...bytes, predicts: "tokens" }, 1)).record(2, [text]);
  const { evaluations } = readSamples(folder);
  expect(evaluations.map(({ samples }) => samples[0])).toEqual([
    { kind: "text", index: 0, prompt: "72 105", truth: "33", continuation: "63" },
    { kind: "text", index: 0, prompt: "Hi", truth: "!", continuation: "?" },
  ]);
});

test("classes have the names of the data, both the predicted one and the label", async () => {
  const known = { predicts: "classes", classNames: ["cat", "dog"], images: {} } as const;
  const wrong = { kind: "classes", index: 0, label: 1, predicted: 0, probability: 0.5 } as const;
  new SamplesFile(folder, 0, job, known).record(1, [wrong, { ...wrong, predicted: -1 }]);
  const { samples } = readSamples(folder).evaluations[0]!;
  expect(samples[0]).toMatchObject({ label: 1, predicted: 0, labelName: "dog", predictedName: "cat" });
  expect(samples[1]).not.toHaveProperty("predictedName");
});

test("a link out of the folder is not followed", async () => {
  const elsewhere = join(folder, "elsewhere.jsonl");
  writeFileSync(elsewhere, `${JSON.stringify({ type: "samples", step: 1, samples: [output(0, 1)] })}\n`);
  symlinkSync(elsewhere, join(folder, samplesFile));
  expect(readSamples(folder)).toEqual({ evaluations: [], images: {} });
});

test("of a file of any size a page gets a limited part, with the reason", () => {
  const own = join(folder, "large");
  mkdirSync(own);
  const path = join(own, "samples.jsonl");
  const text = { kind: "text", index: 0, prompt: "p".repeat(50_000), truth: "", continuation: "" };
  const line = (step: number): string =>
    `${JSON.stringify({ type: "samples", step, samples: Array.from({ length: 20 }, () => text) })}\n`;
  writeFileSync(path, Array.from({ length: 12 }, (_, step) => line(step)).join(""));
  const { evaluations, fault } = readSamples(own);
  expect(evaluations.map(({ step }) => step)).toEqual([11, 10, 9, 8, 7, 6, 5, 4]);
  expect(fault).toBe("evaluations of more than 8388608 characters are not shown");
  truncateSync(path, 2 ** 40);
  expect(readSamples(own)).toEqual({
    evaluations: [],
    images: {},
    fault: `samples.jsonl has ${2 ** 40} bytes, but a page reads at most ${2 ** 27}`,
  });
});
