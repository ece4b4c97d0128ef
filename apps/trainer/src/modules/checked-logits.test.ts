import { arrayRecords, type Records } from "@skein/data";
import { parseJob } from "@skein/job/node";
import { labelledModel } from "@skein/models";
import { type AnyModel, type DataSet, taskOf } from "@skein/step/node";
import { broadcastTo, NdArray, reshape, sum, type Tensor, zeros } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { checkedModel } from "./checked-model.ts";
import { requireLogits } from "./checked-logits.ts";
import { modelOf, traceModel } from "./traced-model.ts";

const job = parseJob(
  JSON.stringify({
    name: "widths",
    ranks: 2,
    batch: 8,
    steps: 1,
    data: { kind: "mnist" },
    model: { kind: "module", file: "/nowhere/net.ts" },
    optimizer: { kind: "sgd" },
    learningRate: { peak: 0.1 },
    evaluation: { batch: 4 },
  }),
  "job.json",
);

const recordsOf = (labels: readonly number[]): Records =>
  arrayRecords({
    inputs: NdArray.zeros("f32", [8, 2]),
    labels: NdArray.zeros("i32", [8, ...labels]),
  });

/** Returns a model whose logits have the shape [B, …positions, width]. */
const netOf = (positions: readonly number[], width: number, more: object = {}): AnyModel =>
  checkedModel(
    {
      ...labelledModel<Tensor, object>(
        {
          init: () => ({ params: zeros([1]), state: {} }),
          apply: (scale, state, x) => {
            const shape = [x.shape[0]!, ...positions, width];
            const each = reshape(sum(x, { dims: [1] }), [x.shape[0]!, ...positions.map(() => 1), 1]);
            return [broadcastTo(each, shape), state];
          },
        },
        { ignoreIndex: -100 },
      ),
      ...more,
    },
    "classes",
    "model",
    "/nowhere",
  );

const check = (model: AnyModel, predicts: DataSet["predicts"], positions: readonly number[] = []): void => {
  const train = recordsOf(positions);
  const params = { dtype: "f32", shape: [1] };
  requireLogits(model, { train, predicts, classes: 3 }, job, { params, state: {} });
};

test("logits must have exactly one score for each class", () => {
  check(netOf([], 3), "classes");
  for (const width of [1, 2, 4, 48])
    expect(() => check(netOf([], width), "classes")).toThrow(
      `model.file /nowhere/net.ts: apply returned logits [4, ${width}], ${width} scores per row, but the data has 3 classes; ` +
        "make the last dimension 3, which is task.classes",
    );
});

test("logits of tokens may be wider, as padded vocabularies are, but not narrower", () => {
  for (const width of [3, 64]) check(netOf([5], width), "tokens", [5]);
  expect(() => check(netOf([5], 2), "tokens", [5])).toThrow(
    "but the data has 3 tokens; make the last dimension at least 3",
  );
});

test("outputs of models that do not declare logits are not compared with classes", () => {
  check(netOf([], 48, { logits: undefined }), "classes");
});

test("a traced model keeps its ignored label", () => {
  const data = { train: recordsOf([]), test: recordsOf([]), predicts: "classes", classes: 3 } as const;
  expect(taskOf(data).classes).toBe(3);
  expect(modelOf(traceModel(netOf([], 3), data, job)).logits).toEqual({ ignoreIndex: -100 });
  expect(() => traceModel(netOf([], 2), data, job)).toThrow("the data has 3 classes");
});
