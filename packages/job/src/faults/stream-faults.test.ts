import { expect, test } from "vitest";
import { checkJob } from "../file/check-job.ts";

const faultsOf = (data: object, more: object = {}): string => {
  const job = { name: "s", batch: 8, steps: 2, optimizer: { kind: "sgd" }, learningRate: { peak: 0.1 } };
  try {
    const model = "size" in data ? { kind: "cnn" } : { kind: "gpt" };
    checkJob({ ...job, data: { ...data }, model, ...more }, { file: "job.yaml" });
    return "";
  } catch (error) {
    return (error as Error).message;
  }
};

const texts = { kind: "text", file: "a.jsonl", testFile: "b.jsonl", stream: {} };
const images = { kind: "webdataset", file: "{0..3}.tar", testFile: "t.tar", size: 4, stream: {} };

test("a stream needs steps and evaluation samples", () => {
  expect(faultsOf(texts)).toBe("");
  expect(faultsOf(images)).toBe("");
  expect(faultsOf({ ...images, stream: { classes: ["cat", "dog"] }, decodesAtOnce: 3 })).toBe("");
  expect(faultsOf({ ...images, stream: { classes: 2, shuffleBuffer: 1, shardsAtOnce: 4 } })).toBe("");
  expect(faultsOf({ ...texts, testFile: undefined })).toMatch(
    /data: testFile is missing, but samples of a stream \(data.stream\) cannot be held out; give testFile with samples for evaluation$/,
  );
  expect(faultsOf({ ...images, kind: "image-parquet", testFile: undefined })).toBe("");
  expect(faultsOf(texts, { steps: undefined, epochs: 3 })).toMatch(
    /epochs: 3 epochs, but the number of samples of a stream \(data.stream\) is unknown; give steps instead$/,
  );
  expect(faultsOf(texts, { evaluation: { everyEpochs: 1 } })).toMatch(
    /everyEpochs: every 1 epochs, but .*; give everySteps instead$/,
  );
  expect(faultsOf({ ...texts, stream: { shardsAtOnce: 3 } })).toMatch(
    /shardsAtOnce: 3 files cannot provide equal parts of a batch of 8 samples; use a divisor of 8$/,
  );
});

test("rejects options that need all samples beforehand", () => {
  for (const limit of [{ validationFraction: 0.5 }, { trainSamples: 4 }, { judgeBy: "training" }])
    expect(faultsOf({ ...texts, ...limit })).toMatch(
      /: (0.5|4|training), but samples of a stream \(data.stream\) are not known in advance; leave \w+ or data.stream out$/,
    );
  expect(faultsOf({ ...texts, stream: { classes: 2 } })).toMatch(/unknown key "data.stream.classes"/);
  expect(faultsOf({ ...texts, stream: { shuffleBuffer: 0 } })).toMatch(/data.stream.shuffleBuffer is 0, but must be/);
  expect(faultsOf({ kind: "image-folder", folder: "a", size: 4, stream: {} })).toMatch(/unknown key "data.stream"/);
});
