import {
  adam,
  applyUpdates,
  elementCount,
  evaluate,
  flattenTree,
  jit,
  leafPaths,
  NdArray,
  randomKey,
  referenceBackend,
  type Tensor,
  type TensorSpec,
  trace,
  unflattenTree,
  valueAndGradWithAux,
} from "@skein/tensor-core";
import { interpretWorld, type ReferenceArray } from "@skein/tensor-core/backend";
import { normalArray, seeded } from "@skein/testing";
import { describe, expect, it } from "vitest";
import {
  bert,
  cnn,
  gpt,
  gpt2,
  type LabelledBatch,
  llama,
  mlp,
  type Model,
  resnet,
  resnet18,
  vit,
} from "../src/index.ts";
import { type HostBatch, modelRows } from "./model-rows.ts";

const keySpec: TensorSpec = { dtype: "u32", shape: [2] };
const initSpecs = (model: Model): { params: TensorSpec[]; state: TensorSpec[] } => {
  const specs: { params: TensorSpec[]; state: TensorSpec[] } = { params: [], state: [] };
  trace(
    (key: Tensor) => {
      const { params, state } = model.init(key);
      specs.params = flattenTree<Tensor>(params).leaves;
      specs.state = flattenTree<Tensor>(state).leaves;
      return key;
    },
    [keySpec] as never,
  );
  return specs;
};
const countParameters = (model: Model): number =>
  initSpecs(model).params.reduce((total, { shape }) => total + elementCount(shape), 0);

const initialise = async (model: Model, seed = 5): Promise<{ params: unknown; state: unknown }> =>
  evaluate((key: Tensor) => model.init(key), referenceBackend())(randomKey(seed)) as never;

const lossOf = async (model: Model, params: unknown, state: unknown, batch: HostBatch): Promise<number> =>
  (
    (await evaluate(
      (p: unknown, s: unknown, b: LabelledBatch) => model.loss(p, s, b, { train: true })[0],
      referenceBackend(),
    )(params as never, state as never, batch as never)) as NdArray
  ).item();

describe.each(modelRows)("$name", ({ model, batch, numClasses, parameters }) => {
  it("has the number of parameters given by the formula", () => {
    expect(countParameters(model)).toBe(parameters);
  });

  it("starts with all classes about equally likely", async () => {
    const { params, state } = await initialise(model);
    expect(Math.abs((await lossOf(model, params, state, batch)) - Math.log(numClasses))).toBeLessThan(0.05);
  });

  it("draws different parameters from different keys, and equal parameters from equal keys", async () => {
    const bits = async (seed: number): Promise<number[]> =>
      flattenTree<NdArray>((await initialise(model, seed)).params).leaves.flatMap((leaf) => leaf.toNumbers());
    expect(await bits(1)).toEqual(await bits(1));
    expect(await bits(1)).not.toEqual(await bits(2));
  });

  it("has the gradient of its loss, by central differences", async () => {
    const { params, state } = await initialise(model);
    // The parameters are not the initial ones, because the small initial head would hide errors in the layers below it.
    const flat = flattenTree<NdArray>(params);
    const paths = leafPaths(params);
    const moved = flat.leaves.map((leaf, i) =>
      NdArray.from(
        normalArray(leaf.shape, 50 + i)
          .toNumbers()
          .map((value) => 0.4 * value + (paths[i]!.endsWith("gain") ? 1 : 0)),
        leaf.shape,
      ),
    );
    const args = [unflattenTree(flat.structure, moved), state, batch] as const;
    const inputs = flattenTree<NdArray>(args).leaves.map(
      (array): ReferenceArray => ({
        spec: { dtype: array.dtype, shape: array.shape },
        data: Float64Array.from(array.toNumbers()),
      }),
    );
    const loss = trace(
      (p: unknown, s: unknown, b: LabelledBatch) => model.loss(p, s, b, { train: true })[0],
      args as never,
    );
    const gradients = trace(
      (p: unknown, s: unknown, b: LabelledBatch) => valueAndGradWithAux(model.loss)(p, s, b, { train: true })[2],
      args as never,
    );
    const analytic = interpretWorld(gradients.graph, [inputs])[0]!;
    const random = seeded(9);
    const step = 1e-6;
    moved.forEach((leaf, i) => {
      for (let sample = 0; sample < Math.min(5, leaf.data.length); sample++) {
        const at = Math.floor(random() * leaf.data.length);
        const { data } = inputs[i]!;
        const value = data[at]!;
        const lossAt = (x: number): number => {
          data[at] = x;
          return interpretWorld(loss.graph, [inputs])[0]![0]!.data[0]!;
        };
        const numeric = (lossAt(value + step) - lossAt(value - step)) / (2 * step);
        data[at] = value;
        expect(
          Math.abs(analytic[i]!.data[at]! - numeric),
          `${paths[i]}[${at}]: ${analytic[i]!.data[at]} against ${numeric}`,
        ).toBeLessThan(1e-6 + 1e-4 * Math.abs(numeric));
      }
    });
  });

  it("fits a small batch, and its metrics show it", async () => {
    const optimizer = adam({ learningRate: 0.03 });
    const step = jit((params: unknown, state: unknown, optim: never, b: LabelledBatch) => {
      const [loss, nextState, gradients] = valueAndGradWithAux(model.loss)(params, state, b, { train: true });
      const [updates, nextOptim] = optimizer.update(gradients, optim, { params });
      return { params: applyUpdates(params, updates), state: nextState, optim: nextOptim, loss };
    }, referenceBackend());
    const start = await initialise(model);
    const first = await lossOf(model, start.params, start.state, batch);
    const memory = await jit((params: unknown) => optimizer.init(params), referenceBackend())(start.params as never);
    let current: Record<string, unknown> = { ...start, optim: memory };
    for (let i = 0; i < 60; i++)
      current = (await step(
        current["params"] as never,
        current["state"] as never,
        current["optim"] as never,
        batch as never,
      )) as never;
    expect(step.cacheSize).toBe(1);
    const last = (await referenceBackend().download(current["loss"] as never)).item();
    expect(last).toBeLessThan(0.25 * first);
    expect(flattenTree<TensorSpec>(current["state"]).leaves.map(({ shape }) => shape)).toEqual(
      flattenTree<TensorSpec>(start.state).leaves.map(({ shape }) => shape),
    );
    const metrics = (await evaluate(
      (p: unknown, s: unknown, b: LabelledBatch) => model.evaluate(p, s, b),
      referenceBackend(),
    )(current["params"] as never, current["state"] as never, batch as never)) as unknown as Record<string, NdArray>;
    expect(metrics["count"]!.item()).toBe(elementCount(batch.labels.shape));
    expect(metrics["correct"]!.item()).toBeGreaterThanOrEqual(0.9 * elementCount(batch.labels.shape));
  });
});

describe("published sizes", () => {
  it.each<[string, Model, number]>([
    ["ResNet-18 for CIFAR-10", resnet18(), 11_173_962],
    ["ResNet-18 for ImageNet", resnet({ numClasses: 1000, channels: [64, 128, 256, 512] }), 11_689_512],
    [
      "ResNet-50 for ImageNet",
      resnet({ numClasses: 1000, block: "bottleneck", channels: [256, 512, 1024, 2048], depths: [3, 4, 6, 3] }),
      25_557_032,
    ],
    ["the digit reader", cnn(), 421_642],
    ["MLP 784-512-512-10", mlp({ sizes: [784, 512, 512, 10] }), 669_706],
    [
      "Llama 3 8B",
      llama({
        vocabulary: 128_256,
        width: 4096,
        numLayers: 32,
        numHeads: 32,
        numKeyHeads: 8,
        hidden: 14_336,
        rotaryBase: 500_000,
        epsilon: 1e-5,
      }),
      8_030_261_248,
    ],
    [
      "GPT-2 small",
      gpt2({ vocabulary: 50_257, contextLength: 1024, width: 768, numLayers: 12, numHeads: 12 }),
      124_439_808,
    ],
    [
      "BERT base, only the encoder",
      bert({
        vocabulary: 30_522,
        contextLength: 512,
        width: 768,
        numLayers: 12,
        numHeads: 12,
        head: "states",
      }),
      109_482_240 - (768 * 768 + 768), // minus the parameters of the pooler
    ],
    [
      "ViT base with 16×16 patches",
      vit({ imageSize: [224, 224], patchSize: 16, width: 768, numLayers: 12, numHeads: 12, numClasses: 1000 }),
      86_567_656,
    ],
    // GPT-2 small has 124,439,808 parameters, of which 12 · (4·768 + 3072 + 768) are biases of matrices, which `gpt`
    // does not have.
    [
      "GPT-2 small without biases",
      gpt({
        vocabulary: 50_257,
        contextLength: 1024,
        width: 768,
        numLayers: 12,
        numHeads: 12,
        positions: "learned",
        norm: "layer",
      }),
      124_439_808 - 12 * (4 * 768 + 3072 + 768),
    ],
  ])("%s", (_, model, count) => {
    expect(countParameters(model)).toBe(count);
  });
});
