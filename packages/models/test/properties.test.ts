import {
  ArgumentError,
  evaluate,
  flattenTree,
  NdArray,
  randomKey,
  referenceBackend,
  type Tensor,
  trace,
  zerosLike,
} from "@skein/tensor-core";
import { normalArray, uniformArray } from "@skein/testing";
import { describe, expect, it } from "vitest";
import { applyBatchNorm, cnn, gpt, type Model, mlp, resnet18 } from "../src/index.ts";
import { dropWhileTraining } from "../src/layers.ts";

const backend = referenceBackend();

/** Returns the logits of a model with its initial parameters. */
const logitsOf = async (model: Model, inputs: NdArray, train: { key?: NdArray } | false = false): Promise<number[]> => {
  const run = evaluate((initKey: Tensor, x: Tensor, keys: readonly Tensor[]) => {
    const { params, state } = model.init(initKey);
    return model.apply(params, state, x, { train: train !== false, ...(keys[0] && { key: keys[0] }) })[0];
  }, backend);
  return (await run(randomKey(3), inputs, (train && train.key ? [train.key] : []) as never)).toNumbers();
};

const small = { vocabulary: 11, contextLength: 8, width: 8, numLayers: 2, numHeads: 2 } as const;

describe("gpt", () => {
  it.each(["rotary", "learned"] as const)(
    "depends on earlier tokens and never on later tokens (%s positions)",
    async (positions) => {
      const model = gpt({ ...small, positions });
      const before = NdArray.from([1, 2, 3, 4, 5, 6], [1, 6], "i32");
      const after = NdArray.from([1, 2, 3, 9, 5, 6], [1, 6], "i32");
      const [a, b] = [await logitsOf(model, before), await logitsOf(model, after)];
      expect(b.slice(0, 3 * 11)).toEqual(a.slice(0, 3 * 11));
      for (const position of [3, 4, 5])
        expect(b.slice(position * 11, (position + 1) * 11)).not.toEqual(a.slice(position * 11, (position + 1) * 11));
    },
  );

  it.each(["rotary", "learned"] as const)("distinguishes positions (%s positions)", async (positions) => {
    // With one layer and no positions, the last token would see the other tokens as a set. With two layers, causality
    // alone would reveal the order of the tokens.
    const model = gpt({ ...small, numLayers: 1, positions });
    const [a, b] = [
      await logitsOf(model, NdArray.from([1, 2, 3], [1, 3], "i32")),
      await logitsOf(model, NdArray.from([2, 1, 3], [1, 3], "i32")),
    ];
    expect(Math.max(...b.slice(22).map((value, i) => Math.abs(value - a[22 + i]!)))).toBeGreaterThan(1e-9);
  });

  it("accepts bytes as tokens", async () => {
    const model = gpt(small);
    expect(await logitsOf(model, NdArray.from([1, 2, 3], [1, 3], "u8"))).toEqual(
      await logitsOf(model, NdArray.from([1, 2, 3], [1, 3], "i32")),
    );
  });

  it("rejects incompatible sizes, with the cure", async () => {
    expect(() => gpt({ ...small, numHeads: 3 })).toThrow(/3 heads do not divide the width 8/);
    expect(() => gpt({ ...small, numHeads: 8 })).toThrow(/8 \/ 8 = 1 values is odd/);
    expect(() => gpt({ ...small, numLayers: 0 })).toThrow(/numLayers is 0; use an integer from 1/);
    await expect(logitsOf(gpt(small), NdArray.zeros("i32", [1, 9]))).rejects.toThrow(/T up to the context length 8/);
  });
});

describe("images", () => {
  it("give equal results as bytes and as fractions", async () => {
    const bytes = uniformArray([2, 8, 8, 1], 0, 256, 1, "u8");
    const fractions = NdArray.from(
      bytes.toNumbers().map((byte) => byte / 255),
      [2, 8, 8, 1],
    );
    for (const model of [cnn({ imageSize: [8, 8], channels: [2, 2], hidden: 3 }), mlp({ sizes: [64, 3] })]) {
      const [a, b] = [await logitsOf(model, bytes), await logitsOf(model, fractions)];
      a.forEach((value, i) => expect(value).toBeCloseTo(b[i]!, 6));
    }
  });

  it("mlp rejects sizes without a layer", () => {
    expect(() => mlp({ sizes: [4] })).toThrow(/describe no layer/);
  });
});

describe("dropout", () => {
  const model = cnn({ imageSize: [4, 4], channels: [2, 2], hidden: 16, dropoutRate: 0.5 });
  const image = normalArray([1, 4, 4, 1], 1);

  it("differs between keys, is equal for equal keys, and is off outside training", async () => {
    const [a, b, again] = [
      await logitsOf(model, image, { key: randomKey(1) }),
      await logitsOf(model, image, { key: randomKey(2) }),
      await logitsOf(model, image, { key: randomKey(1) }),
    ];
    expect(b).not.toEqual(a);
    expect(again).toEqual(a);
    expect(await logitsOf(model, image)).toEqual(
      await logitsOf(cnn({ imageSize: [4, 4], channels: [2, 2], hidden: 16 }), image),
    );
  });

  it("draws different values at different positions in the model", async () => {
    const drop = evaluate(
      (x: Tensor, key: Tensor) => [0, 1].map((use) => dropWhileTraining(x, 0.5, { train: true, key }, use)),
      backend,
    );
    const [first, second] = await drop(NdArray.from(new Array<number>(64).fill(1)), randomKey(1));
    expect(second!.toNumbers()).not.toEqual(first!.toNumbers());
  });

  it("rejects training without a key", async () => {
    await expect(logitsOf(model, image, {})).rejects.toThrow(ArgumentError);
    await expect(logitsOf(model, image, {})).rejects.toThrow(/pass \{ train: true, key \}/);
  });
});

describe("resnet18", () => {
  it("passes its input through the shortcuts even if all branches are zero", async () => {
    const model = resnet18({ channels: [8, 8, 8, 8], inputChannels: 1, numClasses: 3 });
    const run = evaluate((key: Tensor, x: Tensor) => {
      const { params, state } = model.init(key);
      const silence = (block: (typeof params.stages)[number][number]): typeof block => ({
        ...block,
        conv2: { ...block.conv2, norm: { ...block.conv2.norm, gain: zerosLike(block.conv2.norm.gain) } },
      });
      const silenced = { ...params, stages: params.stages.map((blocks) => blocks.map(silence)) };
      return model.apply(silenced, state, x, { train: false })[0];
    }, backend);
    const [a, b] = [
      await run(randomKey(1), normalArray([1, 8, 8, 1], 1)),
      await run(randomKey(1), normalArray([1, 8, 8, 1], 2)),
    ];
    expect(a.toNumbers()).not.toEqual(b.toNumbers());
  });

  it("halves the image size three times", async () => {
    const model = resnet18({ channels: [2, 2, 3, 4], inputChannels: 1 });
    const scopes = new Map<string, readonly number[]>();
    const { graph } = trace(
      (key: Tensor, x: Tensor) => {
        const { params, state } = model.init(key);
        return model.apply(params, state, x, { train: false })[0];
      },
      [randomKey(1), NdArray.zeros("f32", [1, 32, 32, 1])] as never,
    );
    for (const node of graph.nodes) if (node.op === "conv2d") scopes.set(node.scope, node.specs[0]!.shape);
    expect(
      [
        "stem",
        "stage-0/block-1/conv-2",
        "stage-1/block-1/conv-2",
        "stage-2/block-1/conv-2",
        "stage-3/block-1/conv-2",
      ].map((name) => scopes.get(name)),
    ).toEqual([
      [1, 32, 32, 2],
      [1, 32, 32, 2],
      [1, 16, 16, 2],
      [1, 8, 8, 3],
      [1, 4, 4, 4],
    ]);
  });
});

describe("batch normalisation", () => {
  const x = NdArray.from([1, 10, 2, 20, 3, 30, 6, 0], [2, 2, 1, 2]);
  const run = (train: boolean) =>
    evaluate((mean: Tensor, variance: Tensor, input: Tensor, gain: Tensor, shift: Tensor) => {
      const [y, state] = applyBatchNorm({ gain, shift }, { mean, variance }, input, train);
      return { y, state };
    }, backend)(NdArray.from([1, 2]), NdArray.from([4, 9]), x, NdArray.from([2, 1]), NdArray.from([0.5, 0]));

  it("updates its running statistics by a tenth, with the unbiased variance, as PyTorch does", async () => {
    const { state } = await run(true);
    // Channel means 3 and 15; sums of squared deviations 14 and 500 over four values.
    [0.9 * 1 + 0.1 * 3, 0.9 * 2 + 0.1 * 15].forEach((mean, i) =>
      expect(state.mean.toNumbers()[i]!).toBeCloseTo(mean, 5),
    );
    [0.9 * 4 + (0.1 * 14) / 3, 0.9 * 9 + (0.1 * 500) / 3].forEach((variance, i) =>
      expect(state.variance.toNumbers()[i]!).toBeCloseTo(variance, 4),
    );
  });

  it("uses running statistics outside training and does not change them", async () => {
    const { y, state } = await run(false);
    expect([state.mean.toNumbers(), state.variance.toNumbers()]).toEqual([
      [1, 2],
      [4, 9],
    ]);
    expect(y.toNumbers()[2]).toBeCloseTo((2 * (2 - 1)) / Math.sqrt(4 + 1e-5) + 0.5, 5);
    expect(y.toNumbers()[3]).toBeCloseTo((20 - 2) / Math.sqrt(9 + 1e-5), 5);
  });

  it("gives resnet18 a state with two values per channel for every normalisation", async () => {
    const { state } = await evaluate(
      (key: Tensor) => ({ state: resnet18({ channels: [2, 2, 2, 2] }).init(key).state }),
      backend,
    )(randomKey(1));
    const { leaves } = flattenTree<NdArray>(state);
    expect(leaves.length).toBe(2 * (1 + 16 + 3));
  });
});
