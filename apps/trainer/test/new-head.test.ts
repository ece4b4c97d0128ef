import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelOf } from "@skein/pretrained";
import { loadPretrained, savePretrained } from "@skein/pretrained/node";
import { evaluate, type NdArray, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { afterAll, beforeAll, expect, test } from "vitest";
import { evaluateRun } from "../src/commands/evaluate-command.ts";
import { exportHuggingFace } from "../src/export/hugging-face.ts";
import { openSavedRun } from "../src/output-folder/saved-run.ts";
import { train, type TrainJob } from "../src/train.ts";

/** Configuration of a checkpoint that classifies pictures of MNIST's size into three classes. */
const config = {
  model_type: "vit",
  architectures: ["ViTForImageClassification"],
  num_labels: 3,
  image_size: 28,
  patch_size: 14,
  num_channels: 1,
  hidden_size: 8,
  intermediate_size: 12,
  num_hidden_layers: 1,
  num_attention_heads: 2,
};

let folder: string;
const place = (...names: string[]): string => join(folder, ...names);
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "skein-new-head-"));
  const fresh = await evaluate((key: Tensor) => modelOf(config).init(key), referenceBackend())(randomKey(3));
  await savePretrained(place("vit"), { config, ...fresh });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const job = (more: object = {}): TrainJob => ({
  ranks: 2,
  batch: 8,
  steps: 2,
  backend: "cpu",
  data: { kind: "mnist", trainSamples: 64, testSamples: 20 },
  model: { kind: "pretrained", folder: place("vit"), head: "new" },
  optimizer: { kind: "sgd" },
  learningRate: { peak: 1e-30 },
  replicas: { checkEverySteps: 1 },
  ...more,
});

test("a checkpoint with a new head predicts the classes of the data, and keeps its body", async () => {
  const output = place("run");
  const trained = leavesByPath<NdArray>((await train(job(), { output })).parameters());
  const before = leavesByPath<NdArray>((await loadPretrained(place("vit"))).params);
  expect([...trained.keys()]).toEqual([...before.keys()]);
  for (const [path, array] of trained)
    if (path.startsWith("classifier.")) expect(array.shape.at(-1)).toBe(10);
    else {
      const was = before.get(path)!.toNumbers();
      // two steps with a learning rate so small that only zeros change
      expect(Math.max(...array.toNumbers().map((value, i) => Math.abs(value - was[i]!))), path).toBeLessThan(1e-30);
    }

  const run = await openSavedRun(output);
  expect((await evaluateRun(run, () => undefined)).count).toBe(20);
  await exportHuggingFace(run, place("mine"));
  expect(JSON.parse(readFileSync(place("mine", "config.json"), "utf8"))).toMatchObject({ num_labels: 10 });

  // a resumed run loads the head from its own checkpoint
  const head = trained.get("classifier.weight")!;
  const further = leavesByPath<NdArray>((await train(job({ steps: 3 }), { output, resume: true })).parameters());
  expect(further.get("classifier.weight")).toEqual(head);
  expect(leavesByPath<NdArray>((await loadPretrained(place("mine"))).params).get("classifier.weight")).toEqual(head);
});

test("is refused for data without classes, and reported for data with other classes", async () => {
  const refused = async (folderName: string, more: object): Promise<string> =>
    train(job({ model: { kind: "pretrained", folder: place(folderName), ...more }, ...more }), {
      output: place("refused"),
    }).then(
      () => "",
      ({ message }: Error) => message,
    );
  const fresh = await evaluate((key: Tensor) => modelOf(config).init(key), referenceBackend())(randomKey(3));
  await savePretrained(place("three"), { config, ...fresh });
  expect(await refused("three", {})).toMatch(
    /has 3 classes, but the data has 10; give it a new head with head: new, or use data of 3 classes/,
  );
  const text = { model: { kind: "pretrained", folder: place("three"), head: "new" }, data: { kind: "moby-dick" } };
  expect(await refused("three", text)).toMatch(
    /model\.head: a new head predicts classes, but the labels of this data are bytes; remove head/,
  );
});
