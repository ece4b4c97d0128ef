import { ArgumentError, NdArray } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  arrayRecords,
  DataError,
  drawSamples,
  gatherBatch,
  holdOut,
  byteRecords,
  type Records,
  sampleClasses,
} from "./index.ts";

const numRuns = examples(60, 1000);
const fractions = fc.double({ min: 0.01, max: 0.99, noNaN: true });

const columnOf = (records: Records, field: string): number[] =>
  gatherBatch(
    records,
    Array.from({ length: records.count }, (_, i) => i),
  )[field]!.toNumbers();

/** Returns samples with the given labels. The `inputs` of a sample are the index of the sample. */
const recordsOf = (labels: readonly number[], dtype: "i32" | "u8" | "u32"): Records =>
  arrayRecords({
    inputs: NdArray.from(
      labels.map((_, i) => i),
      [labels.length],
    ),
    labels: NdArray.from(labels, [labels.length], dtype),
  });

const countsOf = (labels: readonly number[]): Map<number, number> => {
  const counts = new Map<number, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return counts;
};

test("each sample is in one part with its label, and each class is in proportion, also for data sorted by class", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 }),
      fractions,
      fc.constantFrom("i32", "u8", "u32"),
      (sizes, fraction, dtype) => {
        const labels = sizes.flatMap((size, label) => Array<number>(size).fill(label));
        fc.pre(labels.length >= 2);
        const records = recordsOf(labels, dtype);
        const { train, test: held } = holdOut(records, fraction, { name: "data", classes: sampleClasses(records) });
        const total = Math.max(1, Math.floor(labels.length * fraction));
        expect([train.count, held.count]).toEqual([labels.length - total, total]);
        const inputs = [...columnOf(train, "inputs"), ...columnOf(held, "inputs")];
        expect(inputs.toSorted((a, b) => a - b)).toEqual(labels.map((_, i) => i));
        for (const part of [train, held])
          expect(columnOf(part, "labels")).toEqual(columnOf(part, "inputs").map((i) => labels[i]));
        const counts = countsOf(columnOf(held, "labels"));
        for (const [label, size] of sizes.entries())
          expect(Math.abs((counts.get(label) ?? 0) - (size * total) / labels.length)).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns, seed: 41 },
  );
});

test("a class keeps training samples whenever the held-out ones can be taken from larger classes", () => {
  const records = recordsOf([0, 1, 1, 1, 1, 2, 2, 2, 2], "i32"); // the exact shares are 2/3, 8/3 and 8/3
  const { test: held } = holdOut(records, 0.67, { name: "data", classes: sampleClasses(records) });
  expect(columnOf(held, "labels").toSorted()).toEqual([1, 1, 1, 2, 2, 2]);
  const pairs = recordsOf([0, 0, 1, 1, 2], "i32");
  const split = holdOut(pairs, 0.4, { name: "data", classes: sampleClasses(pairs) });
  expect(columnOf(split.test, "labels").toSorted()).toEqual([0, 1]);
});

test("the draw depends only on counts and classes: strides, offsets and views give the same parts", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(3), { minLength: 2, maxLength: 60 }), fractions, fc.nat(5), (labels, fraction, gap) => {
      const plain = recordsOf(labels, "u8");
      const stride = 1 + gap;
      const bytes = new Uint8Array(3 + stride * labels.length);
      for (const [i, label] of labels.entries()) bytes[3 + i * stride] = label;
      const strided = byteRecords(labels.length, {
        inputs: plain.fields["inputs"]!,
        labels: { bytes, offsetBytes: 3, strideBytes: stride, dtype: "u8", shape: [] },
      });
      const parts = [plain, strided].map((records) =>
        holdOut(records, fraction, { name: "data", classes: sampleClasses(records) }),
      );
      for (const field of ["inputs", "labels"]) {
        expect(columnOf(parts[1]!.train, field)).toEqual(columnOf(parts[0]!.train, field));
        expect(columnOf(parts[1]!.test, field)).toEqual(columnOf(parts[0]!.test, field));
      }
    }),
    { numRuns, seed: 42 },
  );
});

test("labels that are vectors or floats have no classes", () => {
  const labels = NdArray.from([0, 1, 2, 3], [2, 2], "i32");
  expect(sampleClasses(arrayRecords({ labels }))).toBeUndefined();
  expect(sampleClasses(arrayRecords({ labels: NdArray.from([0.5, 1], [2]) }))).toBeUndefined();
  expect(sampleClasses(arrayRecords({ inputs: labels }))).toBeUndefined();
});

test("rejects data that cannot fill both parts, and a fraction outside (0, 1)", () => {
  const one = recordsOf([0], "i32");
  expect(() => holdOut(one, 0.5, { name: "points" })).toThrow(DataError);
  expect(() => holdOut(one, 0.5, { name: "points" })).toThrow(
    "points holds 1 samples, but training and evaluation need at least one each; provide at least two",
  );
  for (const fraction of [0, 1, Number.NaN])
    expect(() => holdOut(recordsOf([0, 1], "i32"), fraction, { name: "points" })).toThrow(ArgumentError);
});

test("a draw of fewer samples holds each sample once with its label, and each class in proportion", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 1, max: 250 }),
      (sizes, count) => {
        const labels = sizes.flatMap((size, label) => Array<number>(size).fill(label));
        const records = recordsOf(labels, "i32");
        const drawn = drawSamples(records, count, sampleClasses(records)!);
        const total = Math.min(count, labels.length);
        const inputs = columnOf(drawn, "inputs");
        expect(inputs).toHaveLength(total);
        expect(new Set(inputs).size).toBe(total);
        expect(columnOf(drawn, "labels")).toEqual(inputs.map((i) => labels[i]));
        const counts = countsOf(columnOf(drawn, "labels"));
        for (const [label, size] of sizes.entries())
          expect(Math.abs((counts.get(label) ?? 0) - (size * total) / labels.length)).toBeLessThan(1);
        expect(columnOf(drawSamples(records, count, sampleClasses(records)!), "inputs")).toEqual(inputs);
      },
    ),
    { numRuns },
  );
});
