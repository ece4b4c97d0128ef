import { arrayRecords, gatherBatch, type Records } from "@skein/data";
import { NdArray } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { limited } from "./build.ts";
import type { DataJob } from "../job/job.ts";
import type { DataSet } from "../modules/task.ts";

const recordsOf = (labels: readonly number[]): Records =>
  arrayRecords({
    inputs: NdArray.from(labels, [labels.length, 1]),
    labels: NdArray.from(labels, [labels.length], "i32"),
  });
const labelsOf = (records: Records): number[] =>
  gatherBatch(
    records,
    Array.from({ length: records.count }, (_, i) => i),
  )["labels"]!.toNumbers();

const data: DataSet<Records> = {
  train: recordsOf(Array.from({ length: 20 }, (_, i) => i)),
  test: recordsOf([100, 101]),
  predicts: "classes",
  classes: 200,
};
const partsOf = (limits: Partial<DataJob>): number[][] => {
  const { train, test: judged } = limited(data, { kind: "program", digest: "", ...limits } as DataJob);
  return [labelsOf(train), labelsOf(judged)];
};

test("with a validation fraction the end of the training samples takes the place of the test samples, before limits cut both", () => {
  const first = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  expect(partsOf({})).toEqual([first(20), [100, 101]]);
  expect(partsOf({ validationFraction: 0.1 })).toEqual([first(18), [18, 19]]);
  expect(partsOf({ validationFraction: 0.5, trainSamples: 4, testSamples: 3 })).toEqual([first(4), [10, 11, 12]]);
  expect(partsOf({ validationFraction: 0.25, trainSamples: 20 })).toEqual([first(15), [15, 16, 17, 18, 19]]);
});
