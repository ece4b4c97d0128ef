import { join } from "node:path";
import { parseJob } from "@skein/job/node";
import { readConfig } from "@skein/pretrained/node";
import { expect, test } from "vitest";
import { jobTextOf } from "./import-job.ts";

const checkpoints = join(import.meta.dirname, "../../../../packages/pretrained/test/checkpoints");

test.each<[string, string, object, object]>([
  ["llama-tied", "./text.txt", { kind: "text" }, {}],
  ["gpt2", "./text.txt", { kind: "text" }, {}],
  ["vit", "./images/train/<class>", { kind: "image-folder", folder: "./images" }, {}],
  ["resnet-basic", "./images/train/<class>", { kind: "image-folder", size: 224 }, {}],
  ["bert-classes", "./tokens.npz", { kind: "numpy" }, {}],
  ["bert-tokens", "./tokens.npz", { kind: "numpy" }, { head: "new" }],
  ["bert-states", "./tokens.npz", { kind: "numpy" }, { head: "new" }],
])("a job for %s is valid, and describes the inputs of %s", async (name, said, data, model) => {
  const place = join(checkpoints, name);
  const config = await readConfig(place);
  const text = await jobTextOf(place, "job.yaml", config);
  expect(text).toMatch(/^# Trains .*\n/);
  expect(text).toContain(said);
  const job = parseJob(text, "job.yaml");
  expect(job).toMatchObject({ data, model: { kind: "pretrained", ...model } });
  if (config["image_size"] !== undefined) expect(job.data).toMatchObject({ size: config["image_size"] });
});
