import { expect, test } from "vitest";
import { checkJob } from "./file/check-job.ts";
import type { Job } from "./job.ts";
import type { DataInput, JobInput, ModelInput } from "./job-input.ts";

const check = (job: object): Job => checkJob(job, { file: "train()" });

test("a program may leave out keys with defaults, at every level", () => {
  const data: DataInput = { kind: "image-folder", folder: "birds", size: 32, augment: { flip: true } };
  const model: ModelInput = { kind: "cnn" };
  const job: JobInput = { name: "birds", batch: 8, steps: 2, optimizer: { kind: "adam" }, learningRate: { peak: 0.1 } };
  expect(check({ ...job, data, model })).toMatchObject({
    data: { augment: { crop: 0, flip: true } },
    model: { hidden: 128 },
    optimizer: { beta1: 0.9 },
  });
  const experts: ModelInput = { kind: "gpt", experts: { count: 4 } };
  const text: DataInput = { kind: "moby-dick" };
  expect(check({ ...job, data: text, model: experts })).toMatchObject({ model: { experts: { topK: 2 } } });
});

test("types require the keys without a default, and reject values that the schema rejects", () => {
  const job: JobInput = { name: "birds", batch: 8, steps: 2, optimizer: { kind: "adam" }, learningRate: { peak: 0.1 } };
  const model: ModelInput = { kind: "cnn" };
  // @ts-expect-error the size of images has no default
  const data: DataInput = { kind: "image-folder", folder: "birds" };
  expect(() => check({ ...job, data, model })).toThrow(/data.size is missing/);
  // @ts-expect-error such an optimizer does not exist
  const optimizer: JobInput["optimizer"] = { kind: "adamx" };
  expect(() => check({ ...job, data: { kind: "mnist" }, model, optimizer })).toThrow(/optimizer.kind is "adamx"/);
  const checked = check({ ...job, data: { kind: "mnist" }, model });
  // @ts-expect-error a checked job is readonly
  checked.optimizer.kind = "sgd";
  // @ts-expect-error `ranks` is a number
  const ranks: string = checked.ranks;
  expect(ranks).toBe(1);
});
