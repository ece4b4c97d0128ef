import { checkJob } from "@skein/job/node";
import { gpt, type Model, resnet18 } from "@skein/models";
import { requireSmoothing, withSmoothing } from "@skein/step/node";
import { constant, evaluate, multiply, NdArray, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { data, model as points } from "./points.ts";

const model = points as Model;
const job = checkJob(
  {
    name: "smoothing",
    batch: 10,
    steps: 1,
    data: { kind: "program", digest: "0".repeat(64) },
    model: { kind: "program", digest: "0".repeat(64) },
    optimizer: { kind: "sgd" },
    learningRate: { peak: 0.1 },
    labelSmoothing: 0.1,
  },
  { file: "test" },
);

test("the loss is (1 − ε) times the loss of the labels plus ε times the mean over the classes", async () => {
  const inputs = NdArray.from([0.5, -1, 2, 0.25], [2, 2]);
  const run = evaluate((key: Tensor, x: Tensor) => {
    const { params, state } = model.init(key);
    const losses = (labels: readonly number[], own: Model, train = true): Tensor =>
      own.loss(params, state, { inputs: x, labels: constant(labels, "i32") }, { train })[0];
    const smoothed = withSmoothing(model, { labelSmoothing: 0.3 });
    return {
      smoothed: losses([0, 1], smoothed),
      judged: losses([0, 1], smoothed, false),
      ofLabels: losses([0, 1], model),
      ofOthers: losses([1, 0], model),
      same: losses([0, 1], withSmoothing(model, {})),
    };
  }, referenceBackend());
  const { smoothed, judged, ofLabels, ofOthers, same } = await run(randomKey(3), inputs);
  // For two classes, torch.nn.functional.cross_entropy(…, label_smoothing=ε) is (1 − ε) · nll + ε / 2 · (sum of both
  // losses).
  expect(smoothed.item()).toBeCloseTo(0.85 * ofLabels.item() + 0.15 * ofOthers.item(), 6);
  expect(judged.item()).toBe(ofLabels.item());
  expect(same.item()).toBe(ofLabels.item());
});

describe("a model", () => {
  test("is accepted if its loss uses the option", () => {
    requireSmoothing(model, data, job);
    const tokens = { dtype: "i32", shape: [8] } as const;
    requireSmoothing(
      gpt({ vocabulary: 5, contextLength: 8, width: 8, numLayers: 1, numHeads: 2 }) as Model,
      { train: { fields: { inputs: tokens, labels: tokens } } } as never,
      job,
    );
    requireSmoothing(
      resnet18({ inputChannels: 1, channels: [4, 4, 4, 4], numClasses: 3 }) as Model,
      {
        train: { fields: { inputs: { dtype: "u8", shape: [8, 8, 1] }, labels: { dtype: "i32", shape: [] } } },
      } as never,
      job,
    );
  });

  test("is rejected if its loss ignores the option and the job asks for it", () => {
    const own: Model = {
      ...model,
      loss: (params, state, batch, { train }) => {
        const [loss, next] = model.loss(params, state, batch, { train });
        return [multiply(loss, 2), next];
      },
    };
    expect(() => requireSmoothing(own, data, job)).toThrow(
      "labelSmoothing is 0.1, but the model's own loss ignores context.labelSmoothing",
    );
    requireSmoothing(own, data, { ...job, labelSmoothing: undefined });
  });
});
