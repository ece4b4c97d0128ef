import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Records } from "@skein/data";
import { checkJob } from "@skein/job/node";
import { modelOf } from "@skein/pretrained";
import { loadImageProcessor, savePretrained } from "@skein/pretrained/node";
import { evaluate, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildData } from "../src/preparation/build-data.ts";
import { exportHuggingFace } from "../src/export/hugging-face.ts";
import { openSavedRun } from "../src/output-folder/saved-run.ts";
import { settleJob } from "../src/job-file/settle-job.ts";
import { train, type TrainJob } from "../src/train.ts";
import { jobFolder, skeinTrain } from "./cli.ts";
import { expectSameEnd } from "./run-ends.ts";

/** Configuration of a checkpoint that classifies pictures of 12×12 into two classes. */
const config = {
  model_type: "vit",
  architectures: ["ViTForImageClassification"],
  num_labels: 2,
  image_size: 12,
  patch_size: 6,
  hidden_size: 8,
  intermediate_size: 12,
  num_hidden_layers: 1,
  num_attention_heads: 2,
};

let folder: string;
let remove: () => void;
const place = (...names: string[]): string => join(folder, ...names);
beforeAll(async () => {
  ({ folder, remove } = jobFolder());
  for (const [i, name] of ["one", "other"].entries())
    for (const part of ["train", "test"]) {
      mkdirSync(place("images", part, name), { recursive: true });
      for (let n = 0; n < 4; n++) {
        const pixels = Uint8Array.from({ length: 40 * (30 + n) * 3 }, (_, at) => (at * (7 + i) + (at >> 5) * n) % 251);
        const image = sharp(pixels, { raw: { width: 40, height: 30 + n, channels: 3 } });
        writeFileSync(place("images", part, name, `${n}.png`), await image.png().toBuffer());
      }
    }
  const fresh = await evaluate((key: Tensor) => modelOf(config).init(key), referenceBackend())(randomKey(3));
  await savePretrained(place("vit"), { config, ...fresh });
});
afterAll(() => remove());

const writePreprocessor = (options: object): void =>
  writeFileSync(place("vit", "preprocessor_config.json"), JSON.stringify({ rescale_factor: 1 / 127.5, ...options }));

const job = (data: object = {}, from = "vit", steps = 2): TrainJob => ({
  ranks: 1,
  batch: 4,
  steps,
  backend: "cpu",
  data: { kind: "image-folder", folder: place("images"), size: 12, trainSamples: 8, ...data },
  model: { kind: "pretrained", folder: place(from) },
  optimizer: { kind: "sgd" },
  learningRate: { peak: 0.01 },
});

/** Returns the training samples of a run of the job. */
const samplesOf = async (asked: TrainJob): Promise<readonly number[]> => {
  const { data } = await settleJob(checkJob({ name: "images", ...asked }, { file: "job.yaml" }));
  return Array.from(((await buildData(data)).train as Records).fields["inputs"]!.bytes);
};

const clip = { image_processor_type: "CLIPImageProcessor", image_mean: [0.9, 0.9, 0.9], image_std: [0.5, 0.4, 0.3] };

/** Expects images to be preprocessed as the checkpoint specifies, also after an export. */
const expectSameImages = async (name: string, options: object): Promise<void> => {
  writePreprocessor(options);
  const { processor } = (await loadImageProcessor(place("vit"), "vit"))!;
  await train(job(), { output: place(name) });
  const { files, remarks } = await exportHuggingFace(await openSavedRun(place(name)), place(`${name} out`));
  expect([files, remarks]).toEqual([["config.json", "model.safetensors", "preprocessor_config.json"], []]);
  expect((await loadImageProcessor(place(`${name} out`), "vit"))!.processor).toEqual(processor);

  const samples = await samplesOf(job());
  expect(await samplesOf(job({}, `${name} out`))).toEqual(samples);
  // and the samples differ from those of the job without the checkpoint
  expect(await samplesOf(job({ fit: "cover", resample: "decoder" }))).not.toEqual(samples);
};

describe("images of a run that fine-tunes a checkpoint", () => {
  test("are preprocessed as it specifies; an export specifies it too, and gives the same images", () =>
    expectSameImages("cut", { ...clip, size: { shortest_edge: 16 }, crop_size: 12, resample: 3 }));

  test.for([
    ["stretched", { image_mean: [1, 1, 1], image_std: [1, 1, 1], size: 12, resample: 1 }],
    ["stretched and cut", { ...clip, size: { height: 20, width: 14 }, crop_size: { height: 12, width: 12 } }],
  ] as const)("likewise %s", { tags: "full" }, ([name, options]) => expectSameImages(name, options));

  test("keep it in a resumed run when the folder says otherwise, or is gone, and when decoded during training", {
    tags: "full",
  }, async () => {
    writePreprocessor({ ...clip, size: { shortest_edge: 16 }, crop_size: 12 });
    await train(job({}, "vit", 4), { output: place("whole") });
    await train(job(), { output: place("parts") });
    const { job: recorded } = await openSavedRun(place("parts"));
    rmSync(place("vit", "preprocessor_config.json"));
    const further = { ...recorded, steps: 4, data: { ...recorded.data, cacheMegabytes: 0 } };
    await train(further as TrainJob, { output: place("parts"), resume: true });
    expectSameEnd(place("parts"), place("whole"), 4);
  });

  test("whose preprocessing no image processor supports are reported, and the folder's file is not used", async () => {
    writePreprocessor({ size: 12 });
    await train(job({ fit: "contain", normalise: { mean: [0], std: [1] } }), { output: place("contained") });
    const { files, remarks } = await exportHuggingFace(await openSavedRun(place("contained")), place("contained out"));
    expect(files).toEqual(["config.json", "model.safetensors"]);
    expect(remarks).toEqual([expect.stringMatching(/^no preprocessor_config\.json was written: /)]);
  });
});

test("import writes an image job that runs unchanged, once images are there", async () => {
  writePreprocessor({ size: 12 });
  const imported = await skeinTrain(folder, "import", "vit", "--output", "imported.yaml", "--json");
  expect([imported.stderr, JSON.parse(imported.stdout)]).toEqual([
    "",
    expect.objectContaining({ kind: "vit", job: "imported.yaml" }),
  ]);
  const dry = await skeinTrain(folder, "run", "imported.yaml", "--dry-run", "--output", "imported");
  expect([dry.stderr, dry.code]).toEqual(["", 0]);
});
