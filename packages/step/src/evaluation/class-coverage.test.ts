import { arrayRecords, type Records } from "@skein/data";
import { NdArray } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { chanceOf, coverageRemarks } from "./class-coverage.ts";

const recordsOf = (labels: readonly number[]): Records =>
  arrayRecords({ labels: NdArray.from(labels, [labels.length], "i32") });
const dataOf = (train: readonly number[], held: readonly number[]) =>
  ({ train: recordsOf(train), test: recordsOf(held), predicts: "classes", classes: 12 }) as const;

test("remarks name the classes that one part of the data lacks", () => {
  expect(coverageRemarks(dataOf([0, 1, 1], [1, 0]), "test")).toEqual([]);
  expect(coverageRemarks(dataOf([0, 1], [1, 7, 3]), "validation")).toEqual([
    expect.stringMatching(/^data: no training sample is of class 3, 7, but validation samples are: .*; shuffle/),
    expect.stringMatching(/^data: no validation sample is of class 0, but training samples are: .*; shuffle/),
  ]);
  expect(coverageRemarks(dataOf([0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]), "test")[0]).toContain(
    "1, 2, 3, 4, 5, 6, 7, 8, … (9 in all)",
  );
});

test("no remark concerns ignored labels, runs evaluated on training samples, or data without classes", () => {
  expect(coverageRemarks(dataOf([0, -100], [0]), "test")).toEqual([]);
  expect(coverageRemarks(dataOf([0], [1]), "training")).toEqual([]);
  expect(coverageRemarks({ ...dataOf([0], [1]), predicts: "values" }, "test")).toEqual([]);
});

test("chance is the share of the most frequent class, and the loss of a uniform guess", () => {
  expect(chanceOf(dataOf([0], [1, 1, 1, 2]))).toEqual({ accuracy: 0.75, loss: Math.log(12) });
  expect(chanceOf({ ...dataOf([0], [1]), predicts: "tokens" })).toEqual({ loss: Math.log(12) });
  expect(chanceOf({ ...dataOf([0], [1]), predicts: "values", classes: undefined })).toEqual({});
});
