import { arrayRecords, byteRecords, textRecords, type Records } from "@skein/data";
import { NdArray } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkedData } from "./checked-data.ts";
import { requireFinite, requireLabels, requireTokens } from "./checked-values.ts";

const recordsOf = (labels: readonly number[], dtype: "i32" | "u8" | "f32" = "i32"): Records =>
  arrayRecords({ labels: NdArray.from(labels, [labels.length], dtype) });
const dataOf = (train: Records, test: Records = train) => ({ train, test, predicts: "classes", classes: 3 }) as const;

test("a label that is no class of the data is reported with its sample and part", () => {
  expect(() => requireLabels(dataOf(recordsOf([0, 1, 2, 3])), {}, "data")).toThrow(
    "data: the label of sample 3 of train is 3, but classes is 3, so labels are whole numbers from 0 to 2; correct the label or classes",
  );
  expect(() => requireLabels(dataOf(recordsOf([0]), recordsOf([2, 9], "u8")), {}, "data")).toThrow(
    "sample 1 of test is 9",
  );
  expect(() => requireLabels(dataOf(recordsOf([0, 7], "f32")), {}, "data")).toThrow("sample 1 of train is 7");
  expect(() => requireLabels(dataOf(recordsOf([0, 1.5], "f32")), undefined, "data")).toThrow("train is 1.5, but");
  const rows = arrayRecords({ labels: NdArray.from([0, 1, 2, 1, 3, 0], [2, 3], "i32") });
  expect(() => requireLabels({ ...dataOf(rows), predicts: "tokens" }, {}, "data")).toThrow("sample 1 at [1] of train");
});

test("a label that the model ignores is allowed; any other needs a declaration", () => {
  const ignored = dataOf(recordsOf([0, -100, 2]));
  expect(() => requireLabels(ignored, { ignoreIndex: -100 }, "data")).not.toThrow();
  expect(() => requireLabels(ignored, undefined, "data")).not.toThrow(); // a user-defined loss may skip negative labels
  expect(() => requireLabels(ignored, {}, "data")).toThrow(
    "or if rows with this label should be ignored, use labelledModel(…, { ignoreIndex: -100 })",
  );
  expect(() => requireLabels(ignored, { ignoreIndex: -1 }, "data")).toThrow("sample 1 of train is -100");
  expect(() => requireLabels(dataOf(recordsOf([0, 255])), { ignoreIndex: 255 }, "data")).not.toThrow();
  expect(() => requireLabels({ ...dataOf(recordsOf([9])), predicts: "own" }, {}, "data")).not.toThrow();
});

test("input tokens outside a vocabulary are reported", () => {
  const inputs = arrayRecords({ inputs: NdArray.from([0, 1, 2, 5, 1, 0], [3, 2], "i32") });
  expect(() => requireTokens({ train: inputs, test: inputs }, 5, "data")).toThrow(
    "data: inputs of sample 1 at [1] of train is 5, but the model's vocabulary has 5 tokens, 0 to 4; correct the tokens",
  );
  expect(() => requireTokens({ train: inputs, test: inputs }, 6, "data")).not.toThrow();
});

test("the first non-finite value is found in strided, shared and overlapping samples", () => {
  const shapes = fc.record({
    count: fc.integer({ min: 1, max: 12 }),
    shape: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 2 }),
    stride: fc.integer({ min: 0, max: 20 }),
    offset: fc.nat(3),
    at: fc.nat(),
    bad: fc.constantFrom(Number.NaN, Infinity, -Infinity),
  });
  fc.assert(
    fc.property(shapes, ({ count, shape, stride, offset, at, bad }) => {
      const each = shape.reduce((product, size) => product * size, 1);
      const total = offset + (count - 1) * stride + each;
      const values = new Float32Array(total);
      const wrong = at % total;
      values[wrong] = bad;
      const field = {
        bytes: new Uint8Array(values.buffer),
        offsetBytes: 4 * offset,
        strideBytes: 4 * stride,
        dtype: "f32",
        shape,
      } as const;
      const sees = Array.from({ length: count }, (_, i) => offset + i * stride).some(
        (begin) => wrong >= begin && wrong < begin + each,
      );
      let message: string | undefined;
      try {
        requireFinite(byteRecords(count, { x: field }), "data");
      } catch (error) {
        ({ message } = error as Error);
      }
      expect(message !== undefined).toBe(sees);
      if (message === undefined) return;
      const [, sample, index = ""] = /x of sample (\d+)(?: at \[([\d, ]+)\])? is /.exec(message)!;
      const numbers = index === "" ? [] : index.split(", ").map(Number);
      const element = numbers.reduce((flat, one, dim) => flat * shape[dim]! + one, 0);
      expect(offset + Number(sample) * stride + element).toBe(wrong); // position of the wrong value
      expect(message).toContain(`is ${bad}, and a loss computed from it is NaN`);
    }),
    { numRuns: examples(200, 3000), seed: 43 },
  );
});

test.each(["f16", "bf16"] as const)(
  "infinities and NaN of %s are found; its largest finite values are not",
  (dtype) => {
    const fill = (value: number): Records => arrayRecords({ x: NdArray.from([0, value], [1, 2], dtype) });
    const largest = dtype === "f16" ? 65504 : 3e38;
    for (const value of [largest, -largest, 1e-6]) expect(() => requireFinite(fill(value), "data")).not.toThrow();
    for (const value of [Infinity, -Infinity, Number.NaN])
      expect(() => requireFinite(fill(value), "data")).toThrow("x of sample 0 at [1] is a value that is not finite");
  },
);

test("values past the first chunk are found, and byte text is not checked", () => {
  const many = new Float32Array(2 ** 19);
  many[2 ** 19 - 3] = Number.NaN;
  const records = arrayRecords({ x: NdArray.from(many, [2 ** 17, 4]) });
  expect(() => requireFinite(records, "data")).toThrow("x of sample 131071 at [1] is NaN");
  expect(() => requireFinite(textRecords(Uint8Array.from({ length: 9 }), 4), "data")).not.toThrow();
});

test("a module's data with such a value are refused unless they declare that the model handles it", () => {
  const inputs = NdArray.from([1, 2, Number.NaN, 4], [2, 2]);
  const samples = arrayRecords({ inputs, labels: NdArray.from([0, 1], [2], "i32") });
  const data = { train: samples, test: samples, predicts: "classes", classes: 2 };
  expect(() => checkedData(data, "data")).toThrow(
    "data: train: inputs of sample 1 at [0] is NaN, and a loss computed from it is NaN; replace the value or drop the sample",
  );
  expect(() => checkedData({ ...data, allowNonFinite: true }, "data")).not.toThrow();
  expect(() => checkedData({ ...data, allowNonFinite: 1 }, "data")).toThrow("must be true or false");
});
