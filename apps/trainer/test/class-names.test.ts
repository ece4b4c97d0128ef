import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { modelOf } from "@skein/pretrained";
import { savePretrained } from "@skein/pretrained/node";
import { evaluate, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSavedRun } from "../src/output-folder/saved-run.ts";
import { exportHuggingFace } from "../src/export/hugging-face.ts";
import { exportOnnxModel } from "../src/export/onnx.ts";
import { train, type TrainJob } from "../src/train.ts";

const config = {
  model_type: "vit",
  architectures: ["ViTForImageClassification"],
  hidden_size: 8,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  intermediate_size: 16,
  image_size: 4,
  patch_size: 2,
  num_channels: 1,
  id2label: { 0: "goose", 1: "duck", 2: "swan" },
  label2id: { goose: 0, duck: 1, swan: 2 },
};

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "skein-class-names-"));
  const fresh = await evaluate((key: Tensor) => modelOf(config).init(key), referenceBackend())(randomKey(3));
  await savePretrained(join(folder, "vit"), { config, ...fresh });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const birdsFile = fileURLToPath(new URL("named-birds.ts", import.meta.url));

const jobOf = (names: readonly string[], model: object = {}): TrainJob => ({
  ranks: 1,
  batch: 6,
  steps: 1,
  backend: "cpu",
  data: { kind: "module", file: birdsFile, export: "birds", options: { names } },
  model: { kind: "pretrained", folder: join(folder, "vit"), ...model },
  optimizer: { kind: "sgd" },
  learningRate: { peak: 0.1 },
  evaluation: { batch: 6 },
});

test("fine-tuning a checkpoint gives the same on data with its classes in another order", async () => {
  const [ours, theirs] = await Promise.all(
    [
      ["duck", "goose", "swan"],
      ["goose", "duck", "swan"],
    ].map((names, i) => train(jobOf(names), { output: join(folder, `order-${i}`) })),
  );
  expect(ours!.summary).toMatchObject({ testLoss: theirs!.summary!.testLoss, classNames: ["goose", "duck", "swan"] });
  expect(ours!.parameters()).toEqual(theirs!.parameters());
});

test("exports of a new head name the classes of the data, and none of the checkpoint's", async () => {
  const names = ["duck", "goose", "swan"];
  const output = join(folder, "new");
  const { summary } = await train(jobOf(names, { head: "new" }), { output });
  expect(summary).toMatchObject({ classNames: names });
  const run = await openSavedRun(output);
  await exportHuggingFace(run, join(folder, "mine"));
  expect(JSON.parse(readFileSync(join(folder, "mine/config.json"), "utf8"))).toMatchObject({
    num_labels: 3,
    id2label: { 0: "duck", 1: "goose", 2: "swan" },
    label2id: { duck: 0, goose: 1, swan: 2 },
  });
  await exportOnnxModel(run, join(folder, "mine.onnx"));
  expect(readFileSync(join(folder, "mine.onnx")).toString("latin1")).toContain('["duck","goose","swan"]');
});

test("a checkpoint of other classes is refused before the first step", async () => {
  const training = train(jobOf(["duck", "heron", "swan"]), { output: join(folder, "refused") });
  await expect(training).rejects.toThrow(
    "the checkpoint has the classes goose, duck, swan, but the data has heron; train a new head with head: new",
  );
});
