import { arrayRecords } from "@skein/data";
import { cast, matmul, mean, NdArray, oneHot, sum, type Tensor, type TensorSpec } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { resultSpecs } from "./result-specs.ts";
import { sampleKindOf, type SampleKind, traceSamplePass } from "./sample-pass.ts";
import type { AnyModel, DataSet } from "./task.ts";

const params: TensorSpec = { dtype: "f32", shape: [4, 3] };

/** Returns a model whose forward pass is the given function. */
const modelOf = (outputs: (weight: Tensor, inputs: Tensor) => unknown): Pick<AnyModel, "apply"> => ({
  apply: (weight, state, inputs) => [outputs(weight as Tensor, inputs as Tensor) as Tensor, state],
});

const records = (inputs: TensorSpec, labels: TensorSpec): DataSet["test"] => {
  const array = ({ dtype, shape }: TensorSpec): NdArray => NdArray.zeros(dtype, [5, ...shape]);
  return arrayRecords({ inputs: array(inputs), labels: array(labels) });
};

const kindOf = (
  outputs: (weight: Tensor, inputs: Tensor) => unknown,
  predicts: DataSet["predicts"],
  inputs: TensorSpec = { dtype: "f32", shape: [4] },
  labels: TensorSpec = { dtype: "i32", shape: [] },
): SampleKind => {
  const data = { test: records(inputs, labels), predicts, classes: 3 };
  return sampleKindOf(traceSamplePass(modelOf(outputs), data, { params, state: {} }), data);
};

const scores = (weight: Tensor, inputs: Tensor): Tensor => matmul(inputs, weight);
const tokens = { dtype: "i32", shape: [6] } as const;
const perToken = (_: Tensor, inputs: Tensor): Tensor => oneHot(cast(inputs, "i32"), 3);

test.each<[SampleKind, ...Parameters<typeof kindOf>]>([
  ["classes", scores, "classes"],
  ["values", scores, "values"],
  ["tree", scores, "own"],
  ["tree", (weight, inputs) => [scores(weight, inputs)], "classes"],
  ["tree", (weight, inputs) => ({ logits: scores(weight, inputs) }), "values"],
  ["tree", (weight, inputs) => sum(scores(weight, inputs), { dims: [1] }), "classes"], // one score for two classes
  ["tree", scores, "classes", undefined, { dtype: "i32", shape: [2] }],
  ["text", perToken, "bytes", tokens, tokens],
  ["text", perToken, "tokens", { ...tokens, dtype: "u8" }, tokens],
  ["tree", (_, inputs) => ({ scores: perToken(_, inputs) }), "tokens", tokens, tokens],
  ["tree", (_, inputs) => cast(inputs, "f32"), "bytes", tokens, tokens],
  ["tree", perToken, "bytes", tokens, { dtype: "i32", shape: [] }], // one token that follows a complete text
])("a sample is shown as %s for such outputs of the model: %#", (kind, ...shown) => {
  expect(kindOf(...shown)).toBe(kind);
});

test("outputs for samples are traced for one sample, whatever the batch of the job", () => {
  const data = { test: records({ dtype: "f32", shape: [4] }, { dtype: "i32", shape: [] }), predicts: "own" } as const;
  const outputs = (weight: Tensor, inputs: Tensor): unknown => ({ a: [scores(weight, inputs)], b: inputs });
  expect(resultSpecs(traceSamplePass(modelOf(outputs), data, { params, state: {} }))).toMatchObject({
    a: [{ dtype: "f32", shape: [1, 3] }],
    b: { dtype: "f32", shape: [1, 4] },
  });
});

test.each<[(weight: Tensor, inputs: Tensor) => unknown, RegExp]>([
  [(weight, inputs) => ({ y: scores(weight, inputs), scale: mean(weight) }), /returns as "scale" f32\[\], .* \[1, …\]/],
  [(weight) => weight, /returns as "outputs" f32\[4, 3\], .* must be \[1, …\] for a batch of 1; return a row/],
  [
    (_, inputs) => [mean(inputs, { dims: [0], keepDims: true })],
    /returns as "0" f32\[1, 4\], .* \[2, …\] for a batch of 2/,
  ],
  [() => ({}), /returns no tensor, but a sample is shown by its row/],
  [
    () => {
      throw new Error("no");
    },
    /no \(for the outputs of a batch of 1\)/,
  ],
])("outputs without a row for each sample are refused in one line: %#", (outputs, line) => {
  expect(() => kindOf(outputs, "own")).toThrow(expect.objectContaining({ kind: "user", code: "config" }));
  expect(() => kindOf(outputs, "own")).toThrow(/^evaluation\.samples: .* remove evaluation\.samples$/);
  expect(() => kindOf(outputs, "own")).toThrow(line);
});
