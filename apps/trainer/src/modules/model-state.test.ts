import { arrayRecords } from "@skein/data";
import { checkJob } from "@skein/job/node";
import type { AnyModel } from "@skein/step/node";
import {
  add,
  allReduce,
  axisIndex,
  cast,
  type DType,
  full,
  greater,
  mean,
  multiply,
  NdArray,
  sum,
  type Tensor,
  uniform,
} from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { requireSharedState } from "./model-state.ts";
import { traceModel } from "./traced-model.ts";

interface Seen {
  readonly state: Tensor;
  readonly params: Tensor;
  readonly inputs: Tensor;
  readonly key: Tensor;
}

/** Returns a model in which each step replaces the state `seen` by the result of `next`. */
const modelOf = (dtype: DType, next: (seen: Seen) => Tensor): AnyModel =>
  ({
    init: () => ({ params: { w: full([], 1) }, state: { figures: { seen: full([], 0, dtype) }, mean: full([], 0) } }),
    loss: (
      { w }: { w: Tensor },
      { figures: { seen } }: never,
      { inputs }: { inputs: Tensor },
      { key }: { key: Tensor },
    ) => {
      const state = next({ state: seen, params: w, inputs, key });
      return [multiply(mean(inputs), w), { figures: { seen: state }, mean: mean(inputs) }];
    },
    evaluate: (_params: unknown, _state: unknown, { mask }: { mask: Tensor }) => ({
      lossSum: sum(cast(mask, "f32")),
      count: sum(cast(mask, "f32")),
    }),
  }) as never;

const samples = arrayRecords({ inputs: NdArray.zeros("f32", [8, 1]) });
const check = (model: AnyModel, settings: object = { ranks: 2 }): void => {
  const job = checkJob(
    {
      name: "state",
      batch: 4,
      evaluation: { batch: 4 },
      steps: 1,
      data: { kind: "mnist" },
      model: { kind: "mlp", hidden: [5] },
      optimizer: { kind: "sgd" },
      learningRate: { peak: 0.1 },
      ...settings,
    },
    { file: "job.yaml" },
  );
  const traced = traceModel(model, { train: samples, test: samples, predicts: "own" } as never, job);
  requireSharedState(traced, job, "model.file own.ts");
};

const total = ({ inputs }: Seen): Tensor => sum(inputs);

describe("state that is not f32", () => {
  test.each<[DType, (seen: Seen) => Tensor, RegExp]>([
    [
      "i32",
      (seen) => add(seen.state, cast(total(seen), "i32")),
      /state figures\.seen is i32\[\] and depends on the samples/,
    ],
    ["u32", (seen) => cast(total(seen), "u32"), /is u32\[\] and depends on the samples/],
    ["u8", (seen) => cast(total(seen), "u8"), /is u8\[\] and depends on the samples/],
    [
      "bool",
      (seen) => greater(total(seen), 0),
      /is bool\[\] and depends on the samples, so it would differ between 2 ranks/,
    ],
    ["bool", ({ key }) => greater(sum(uniform(key, [1])), 0.5), /depends on the random key/],
    ["i32", ({ state }) => add(state, axisIndex("data")), /depends on the number of its rank/],
  ])("%s is refused if ranks would differ", (dtype, next, message) => {
    const model = modelOf(dtype, next);
    expect(() => check(model)).toThrow(message);
    expect(() => check(model)).toThrow(/^model\.file own\.ts: .*make it f32, which ranks average/);
    expect(() => check(model, { ranks: 1 })).not.toThrow();
  });

  test.each<DType>(["f16", "bf16"])("%s is refused on one rank, too", (dtype) => {
    const model = modelOf(dtype, ({ state }) => state);
    for (const ranks of [1, 2])
      expect(() => check(model, { ranks })).toThrow(
        `model.file own.ts: state figures.seen is ${dtype}[], but a step computes with state in 32 bits; make it f32`,
      );
  });

  test("is refused if parts of a batch would differ", () => {
    const model = modelOf("i32", (seen) => cast(total(seen), "i32"));
    expect(() => check(model, { ranks: 1, accumulate: 2 })).toThrow(/so it would differ between 2 parts of a batch/);
  });

  test.each<[DType, (seen: Seen) => Tensor]>([
    ["i32", ({ state }) => add(state, 1)],
    ["bool", ({ params }) => greater(params, 0)],
    ["u8", ({ state }) => state],
    ["f32", total],
    ["i32", (seen) => cast(allReduce(total(seen), "data"), "i32")],
  ])("%s is allowed if it is the same on all ranks, or averaged", (dtype, next) => {
    expect(() => check(modelOf(dtype, next))).not.toThrow();
  });
});
