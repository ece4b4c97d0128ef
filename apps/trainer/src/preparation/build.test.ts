import { arrayRecords, gatherBatch, byteRecords, type Records, textRecords } from "@skein/data";
import type { DataJob } from "@skein/job/node";
import type { DataSet } from "@skein/step/node";
import { NdArray } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { limitData } from "./build-data.ts";

const recordsOf = (labels: readonly number[]): Records =>
  arrayRecords({
    inputs: NdArray.from(labels, [labels.length, 1]),
    labels: NdArray.from(labels, [labels.length], "i32"),
  });
const columnOf = (records: Records, field = "labels"): number[] =>
  gatherBatch(
    records,
    Array.from({ length: records.count }, (_, i) => i),
  )[field]!.toNumbers();

const partsOf = (data: DataSet<Records>, limits: Partial<DataJob>): [number[], number[]] => {
  const { train, test: judged } = limitData(data, { kind: "program", digest: "", ...limits } as DataJob);
  return [columnOf(train), columnOf(judged)];
};
const range = (count: number, from = 0): number[] => Array.from({ length: count }, (_, i) => from + i);
const sorted = (numbers: readonly number[]): number[] => numbers.toSorted((a, b) => a - b);

const values: DataSet<Records> = { train: recordsOf(range(20)), test: recordsOf([100, 101]), predicts: "values" };

test("validation samples replace the test samples, before limits shorten both parts", () => {
  expect(partsOf(values, {})).toEqual([range(20), [100, 101]]);
  const [train, held] = partsOf(values, { validationFraction: 0.2 });
  expect([train.length, held.length]).toEqual([16, 4]);
  expect(sorted([...train, ...held])).toEqual(range(20));
  expect(sorted(held)).not.toEqual(range(4, 16));
  expect(partsOf(values, { validationFraction: 0.2, trainSamples: 3, testSamples: 2 })).toEqual([
    train.slice(0, 3),
    held.slice(0, 2),
  ]);
});

test("validation samples of sorted classes hold the same share of each class, in every run", () => {
  const classes = range(100).map((i) => Math.floor(i / 10));
  const data = { ...values, train: recordsOf(classes), predicts: "classes", classes: 10 } as const;
  const [train, held] = partsOf(data, { validationFraction: 0.1 });
  expect(sorted(held)).toEqual(range(10));
  expect(sorted(train)).toEqual(range(90).map((i) => Math.floor(i / 9)));
  expect(partsOf(data, { validationFraction: 0.1 })).toEqual([train, held]);
});

test("limits of sorted classes draw the same share of each class, the same in every run", () => {
  const sortedClasses = (each: number): Records => recordsOf(range(10 * each).map((i) => Math.floor(i / each)));
  const data = { train: sortedClasses(20), test: sortedClasses(10), predicts: "classes", classes: 10 } as const;
  const limits = { trainSamples: 50, testSamples: 20 };
  const [train, held] = partsOf(data, limits);
  expect([sorted(train), sorted(held)]).toEqual([
    range(50).map((i) => Math.floor(i / 5)),
    range(20).map((i) => Math.floor(i / 2)),
  ]);
  expect(partsOf(data, limits)).toEqual([train, held]);
  const [few, ofFew] = partsOf(data, { ...limits, judgeBy: "training" });
  expect([few, sorted(ofFew)]).toEqual([train, range(20).map((i) => Math.floor(i / 2))]);
  expect(sorted(partsOf(data, { ...limits, validationFraction: 0.1 })[0])).toEqual(sorted(train));
  // a limit of all samples changes nothing
  expect(partsOf(data, { trainSamples: 200, testSamples: 1000 })).toEqual(partsOf(data, {}));
});

test("validation samples of text, of overlapping windows and of validationFrom: end are the last ones", () => {
  const end = { validationFraction: 0.25, validationFrom: "end" } as const;
  expect(partsOf(values, end)).toEqual([range(15), range(5, 15)]);
  expect(partsOf(values, { ...end, validationFraction: 0.5, trainSamples: 4, testSamples: 3 })).toEqual([
    range(4),
    range(3, 10),
  ]);
  const text = textRecords(Uint8Array.from(range(41)), 4);
  const ofText = limitData({ train: text, test: text, predicts: "bytes", classes: 256 }, {
    kind: "program",
    validationFraction: 0.1,
  } as DataJob);
  expect(columnOf(ofText.test, "inputs")).toEqual(range(4, 36));
  // windows of 3 that begin at each value of a series share values, so random drawing would put test values into
  // training
  const bytes = new Uint8Array(Float32Array.from(range(12)).buffer);
  const windows = byteRecords(10, {
    inputs: { bytes, offsetBytes: 0, strideBytes: 4, dtype: "f32", shape: [3] },
    labels: { bytes, offsetBytes: 8, strideBytes: 4, dtype: "f32", shape: [] },
  });
  const series: DataSet<Records> = { train: windows, test: windows, predicts: "values" };
  expect(partsOf(series, { validationFraction: 0.2 })[1]).toEqual([10, 11]);
  expect(sorted(partsOf(series, { validationFraction: 0.2, validationFrom: "draw" })[1])).not.toEqual([10, 11]);
});
