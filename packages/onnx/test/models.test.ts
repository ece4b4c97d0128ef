import { bert, cnn, gpt, gpt2, llama, mlp, type Model, resnet, resnet18, vit } from "@skein/models";
import {
  bernoulli,
  constant,
  evaluate,
  type DType,
  gather,
  groupedMatmul,
  mean,
  multiply,
  NdArray,
  randomKey,
  referenceBackend,
  type Tensor,
} from "@skein/tensor-core";
import { firstDifference } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { exportOnnx } from "../src/index.ts";
import { runOnnx } from "./run-onnx.ts";

const reference = referenceBackend();
const tokens = { dtype: "i32", shape: [6] } as const;
const image = { dtype: "u8", shape: [16, 16, 3] } as const;

const models: Readonly<
  Record<string, readonly [unknown, { readonly dtype: DType; readonly shape: readonly number[] }]>
> = {
  mlp: [mlp({ sizes: [12, 8, 3] }), { dtype: "f32", shape: [12] }],
  cnn: [
    cnn({
      imageSize: [16, 16],
      inputChannels: 3,
      channels: [4, 6],
      hidden: 8,
      dropoutRate: 0.3,
      numClasses: 3,
    }),
    image,
  ],
  resnet18: [resnet18({ inputChannels: 3, channels: [4, 4, 6, 6], numClasses: 3 }), image],
  resnet: [resnet({ block: "bottleneck", channels: [8, 16], depths: [1, 1], numClasses: 3 }), image],
  vit: [vit({ imageSize: [16, 16], patchSize: 4, width: 8, numLayers: 2, numHeads: 2, numClasses: 3 }), image],
  gpt: [gpt({ vocabulary: 11, contextLength: 6, width: 8, numLayers: 2, numHeads: 2 }), tokens],
  gpt2: [gpt2({ vocabulary: 11, contextLength: 8, width: 8, numLayers: 2, numHeads: 2 }), tokens],
  llama: [
    llama({
      vocabulary: 11,
      width: 16,
      numLayers: 2,
      numHeads: 4,
      numKeyHeads: 2,
      hidden: 12,
      rotaryScaling: {
        type: "llama3",
        factor: 8,
        lowFrequencyFactor: 1,
        highFrequencyFactor: 4,
        originalPositions: 32,
      },
    }),
    tokens,
  ],
  bert: [
    bert({ vocabulary: 11, contextLength: 8, width: 8, numLayers: 2, numHeads: 2, head: { numClasses: 3 } }),
    tokens,
  ],
  "bert with padding": [
    bert({
      vocabulary: 11,
      contextLength: 8,
      width: 8,
      numLayers: 2,
      numHeads: 2,
      head: { numClasses: 3 },
      padding: 0,
    }),
    tokens,
  ],
};

const samplesOf = (
  { dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] },
  count: number,
  padded: boolean,
) => {
  const all = [count, ...shape];
  const numbers = Array.from({ length: all.reduce((a, b) => a * b) }, (_, i) =>
    dtype === "f32" ? Math.sin(i) : (i * 37 + 5) % (dtype === "i32" ? 11 : 256),
  );
  // Rows of tokens end in padding of different lengths; the last row contains only padding.
  if (dtype === "i32" && padded)
    for (const i of numbers.keys()) {
      const [row, place] = [Math.floor(i / shape[0]!), i % shape[0]!];
      if (place >= shape[0]! - 2 * row) numbers[i] = 0;
    }
  return NdArray.from(numbers, all, dtype);
};

describe("a model gives the same logits in onnxruntime, for any number of samples", () => {
  test.each(Object.entries(models))("%s", async (name, [made, sample]) => {
    const model = made as Model;
    const { params, state } = (await evaluate(
      (key: Tensor) => model.init(key) as never,
      reference,
    )(randomKey(7))) as unknown as { readonly params: unknown; readonly state: unknown };
    const apply = (weights: { params: unknown; state: unknown }, inputs: Tensor): Tensor =>
      model.apply(weights.params, weights.state, inputs, { train: false })[0];
    const bytes = exportOnnx({
      fn: (weights: { params: unknown; state: unknown }, { samples }) => ({ logits: apply(weights, samples!) }),
      weights: { params, state } as never,
      inputs: { samples: sample },
      batch: "dynamic",
    });
    for (const count of [1, 4]) {
      const samples = samplesOf(sample, count, name.includes("padding"));
      const ours = (await evaluate(apply as never, reference)({ params, state } as never, samples as never)) as NdArray;
      const { logits } = await runOnnx(bytes, { samples });
      expect(logits!.shape).toEqual(ours.shape);
      const scale = Math.max(...ours.toNumbers().map(Math.abs));
      const tolerance = { absolute: 1e-5 * scale, relative: 0 };
      expect(firstDifference(logits!.toNumbers(), ours.toNumbers(), tolerance)).toBeUndefined();
    }
  });
});

describe("rejects by name", () => {
  const write = (fn: (x: Tensor) => Tensor, batch: number | "dynamic" = "dynamic") =>
    exportOnnx({
      fn: (_: object, { x }) => ({ y: fn(x!) }),
      weights: {},
      inputs: { x: { dtype: "f32", shape: [4] } },
      batch,
    });

  test("random numbers, means over the batch, and an input with the name of a weight", () => {
    expect(() =>
      exportOnnx({
        fn: (_: object, { key }) => ({ y: bernoulli(key!, 0.5, [4]) }),
        weights: {},
        inputs: { key: { dtype: "u32", shape: [2] } },
      }),
    ).toThrow(/^random-bits #\d+ cannot be exported to ONNX: no operators of ONNX give the same random numbers/);
    // The gather of a mixture of experts works along the batch, but the mixture cannot be exported for any batch size.
    expect(() =>
      exportOnnx({
        fn: (weights: { w: Tensor }, { x }) => {
          const taken = gather(x!, constant([0], "i32"));
          return { y: groupedMatmul(taken, weights.w, constant([1], "i32")) };
        },
        weights: { w: NdArray.from([1, 2, 3, 4], [1, 4, 1]) },
        inputs: { x: { dtype: "f32", shape: [4] } },
        batch: "dynamic",
      }),
    ).toThrow(/^grouped-matmul #\d+ cannot be exported to ONNX: mixtures of experts are not exported/);
    expect(() => write((x) => mean(x))).toThrow(
      /is not an affine function of the batch size; export for a single size/,
    );
    expect(write((x) => mean(x), 2).length).toBeGreaterThan(0);
    expect(() =>
      exportOnnx({
        fn: (weights: { x: Tensor }, { x }) => ({ y: multiply(weights.x, x!) }),
        weights: { x: NdArray.from([1], [1]) },
        inputs: { x: { dtype: "f32", shape: [1] } },
      }),
    ).toThrow("the input x has the name of a weight");
  });
});
