import { arrayRecords, gatherBatch, type Records, type StreamedRecords, takeRecords } from "@skein/data";
import type { Job } from "@skein/job/node";
import { NdArray } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { TrainingData } from "../task/task.ts";
import { namesOf, withCheckpointClasses } from "./class-names.ts";

const jobOf = (id2label: object | undefined, more: object = {}): Pick<Job, "model"> =>
  ({ model: { kind: "pretrained", folder: "vit", config: { id2label }, ...more } }) as unknown as Pick<Job, "model">;

const recordsOf = (labels: readonly number[], dtype: "i32" | "u8" = "i32"): Records =>
  arrayRecords({
    inputs: NdArray.from(labels, [labels.length]),
    labels: NdArray.from(labels, [labels.length], dtype),
  });

const dataOf = (
  classNames: readonly string[],
  labels: readonly number[],
  dtype: "i32" | "u8" = "i32",
): TrainingData => ({
  train: recordsOf(labels, dtype),
  test: takeRecords(recordsOf(labels, dtype), 1),
  predicts: "classes",
  classes: classNames.length,
  classNames,
});

const labelsOf = (samples: unknown): number[] => {
  const records = samples as Records;
  return gatherBatch(
    records,
    Array.from({ length: records.count }, (_, i) => i),
  )["labels"]!.toNumbers();
};

const dictionary = (names: readonly string[]): object => Object.fromEntries(names.map((name, i) => [i, name]));

test("labels keep their names under the numbers of a checkpoint, whatever the order of both", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 12 }),
      fc.infiniteStream(fc.nat()),
      fc.constantFrom("i32", "u8"),
      (names, order, dtype) => {
        const keys = new Map(names.map((name) => [name, order.next().value]));
        const theirs = names.toSorted((a, b) => keys.get(a)! - keys.get(b)! || (a < b ? -1 : 1));
        const data = dataOf(names, [...names.keys(), 0, 0, 1], dtype);
        const matched = withCheckpointClasses(data, jobOf(dictionary(theirs)));
        const isMatched =
          namesOf(data) !== undefined && theirs.some((name, i) => name !== String(i) && name !== `LABEL_${i}`);
        const read = (part: "train" | "test", of: TrainingData): (string | undefined)[] =>
          labelsOf(of[part]).map((label) => of.classNames?.[label]);
        for (const part of ["train", "test"] as const) expect(read(part, matched)).toEqual(read(part, data));
        if (isMatched) expect(matched.classNames).toEqual(theirs);
        expect(labelsOf(data.train)).toEqual([...names.keys(), 0, 0, 1]); // the original data is unchanged
      },
    ),
    { numRuns: examples(60, 1000), seed: 44 },
  );
});

test("a stream numbers its classes in the order of the checkpoint, and an ignored label stays", () => {
  const stream = { samples: { of: "webdataset", classes: ["cat", "dog"] } };
  const train = { count: Infinity, fields: {}, stream } as unknown as StreamedRecords;
  const data = { ...dataOf(["cat", "dog"], [0, 1, -100]), train };
  const matched = withCheckpointClasses(data, jobOf({ 0: "dog", 1: "cat" }));
  expect((matched.train as StreamedRecords).stream.samples).toMatchObject({ classes: ["dog", "cat"] });
  const records = withCheckpointClasses(dataOf(["cat", "dog"], [0, 1, -100]), jobOf({ 0: "dog", 1: "cat" }));
  expect(labelsOf(records.train)).toEqual([1, 0, -100]);
});

test("rejects classes that a checkpoint does not name", () => {
  expect(() => withCheckpointClasses(dataOf(["cat", "emu"], [0]), jobOf({ 0: "dog", 1: "cat" }))).toThrow(
    "model.folder: the checkpoint has the classes dog, cat, but the data has emu; train a new head with head: new",
  );
});

test("leaves data unchanged without names on both sides, or with a new head", () => {
  const data = dataOf(["cat", "emu"], [0]);
  const theirs = { 0: "dog", 1: "cat" };
  for (const job of [
    jobOf(undefined),
    jobOf({ 0: "LABEL_0", 1: "LABEL_1" }),
    jobOf(theirs, { head: "new" }),
    jobOf(theirs, { weights: "none" }),
    { model: { kind: "cnn" } } as unknown as Pick<Job, "model">,
  ])
    expect(withCheckpointClasses(data, job)).toBe(data);
  const numbered = dataOf(["0", "1"], [0]);
  expect(withCheckpointClasses(numbered, jobOf(theirs))).toBe(numbered);
  expect(namesOf(numbered)).toBeUndefined();
});
