import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { architectures, modelNamed } from "./architectures.ts";
import { checkShape, type TransformerShape } from "./model-shape.ts";
import { operatorsOf, parameterCount, partsOf, passWork, sumOver } from "./modules.ts";
import type { PassSetting } from "./operator.ts";

const bf16: PassSetting = {
  batch: 1,
  length: 1024,
  context: 1024,
  type: "bf16",
  valueBytes: 2,
  weightBytes: 2,
  flashAttention: true,
  tensorParallel: 1,
  training: true,
};

const transformers = architectures.filter((shape) => shape.kind === "transformer");

test("models have their published number of parameters", () => {
  expect(Object.fromEntries(architectures.map((shape) => [shape.name, parameterCount(shape)]))).toEqual({
    "gpt-2": 124_439_808,
    "gpt-2-medium": 354_823_168,
    "gpt-2-large": 774_030_080,
    "gpt-2-xl": 1_557_611_200,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "resnet-50": 25_557_032,
  });
});

test("ResNet-50 takes 4.09 billion multiply-adds per image", () => {
  // torchvision's table of models: 4.089 GFLOPS, where a multiplication and its addition count as one flop.
  const image = { ...bf16, length: 1, context: 1, training: false };
  const products = sumOver(partsOf(modelNamed("resnet-50"), image), ({ operator, forward }) =>
    operator === "convolution" || operator === "matmul" ? forward.flops : 0,
  );
  expect(products / 2e9).toBeCloseTo(4.089, 3);
});

describe("a transformer's flops", () => {
  const productFlops = (shape: TransformerShape, setting: PassSetting): number =>
    sumOver(partsOf(shape, setting), ({ operator, forward }) =>
      operator === "matmul" || operator === "attention" ? forward.flops : 0,
    );

  /** Returns the number of weights in matrix products: all weights except embeddings, norms and biases. */
  const matrixWeights = ({
    width,
    layers,
    heads,
    keyValueHeads,
    hidden,
    gated,
    vocabulary,
  }: TransformerShape): number =>
    layers * (2 * width ** 2 + (2 * width ** 2 * keyValueHeads) / heads + (gated ? 3 : 2) * width * hidden) +
    vocabulary * width;

  test("are those of its operators: 2 per weight and token, and 4·layers·s·d for scores and values, half of that if masked scores are skipped", () => {
    for (const shape of transformers) {
      const s = bf16.length;
      const weightFlops = 2 * matrixWeights(shape) * s;
      const scoreFlops = 4 * shape.layers * s * s * shape.width;
      expect(productFlops(shape, { ...bf16, flashAttention: false })).toBe(weightFlops + scoreFlops);
      expect(productFlops(shape, bf16)).toBe(weightFlops + (scoreFlops * (s + 1)) / (2 * s));
    }
  });

  test("are close to the rule of thumb in total", () => {
    for (const shape of transformers) {
      const parts = partsOf(shape, bf16);
      const embedding = shape.vocabulary * shape.width * (shape.tiedHead ? 0 : 1);
      const rule =
        bf16.length * (2 * (parameterCount(shape) - embedding) + 2 * shape.layers * bf16.length * shape.width);
      const { flops } = passWork(parts, "forward");
      expect(flops).toBe(sumOver(parts, ({ forward }) => forward.flops));
      expect(Math.abs(flops / rule - 1)).toBeLessThan(0.015);
    }
  });

  test("double in the backward pass; those of FlashAttention take 2.5 times as many", () => {
    for (const shape of transformers) {
      for (const flashAttention of [true, false]) {
        const parts = partsOf(shape, { ...bf16, flashAttention });
        for (const operator of parts
          .flatMap(operatorsOf)
          .filter(({ operator }) => operator === "matmul" || operator === "attention")) {
          const backward = operator.backward.reduce((sum, { flops }) => sum + flops, 0);
          expect(backward).toBe((operator.operator === "attention" ? 2.5 : 2) * operator.forward.flops);
        }
      }
    }
  });

  test("of a decoded token are those of the last row of scores", () => {
    const shape = modelNamed("gpt-2") as TransformerShape;
    const inference = { ...bf16, training: false };
    const upTo = (length: number): number =>
      sumOver(partsOf(shape, { ...inference, length, context: length }), ({ operator, forward }) =>
        operator === "attention" ? forward.flops : 0,
      );
    const one = sumOver(partsOf(shape, { ...inference, length: 1, context: 500 }), ({ operator, forward }) =>
      operator === "attention" ? forward.flops : 0,
    );
    expect(one).toBe(upTo(500) - upTo(499));
  });
});

test("small transformers have the matrix products of their traced training steps", () => {
  // Flops of matmul, attention and attention-backward by the operators' cost rules, in the traced gradients of the gpt
  // model of @skein/models with these sizes.
  const tiny: TransformerShape = {
    ...(modelNamed("gpt-2") as TransformerShape),
    vocabulary: 64,
    contextLength: 32,
    width: 32,
    layers: 2,
    heads: 4,
    keyValueHeads: 4,
    hidden: 128,
  };
  const gated: TransformerShape = {
    ...(modelNamed("llama-2-7b") as TransformerShape),
    vocabulary: 50,
    contextLength: 16,
    width: 24,
    layers: 3,
    heads: 3,
    keyValueHeads: 3,
    hidden: 64,
  };
  for (const [shape, batch, length, matmul, attention] of [
    [tiny, 3, 32, 15_335_424, 405_504],
    [gated, 2, 16, 4_211_712, 78_336],
  ] as const) {
    const parts = partsOf(shape, { ...bf16, batch, length, context: length });
    const flops = (kind: string, backward: boolean): number =>
      sumOver(parts, (operator) =>
        operator.operator === kind
          ? (backward ? operator.backward : [operator.forward]).reduce((sum, { flops }) => sum + flops, 0)
          : 0,
      );
    expect(flops("matmul", false) + flops("matmul", true)).toBe(matmul);
    expect(flops("attention", false)).toBe(attention);
    expect(flops("attention", true)).toBe(2.5 * attention);
  }
});

describe("bytes saved for the backward pass", () => {
  // Bytes saved per layer: Korthikanti et al. 2022, arXiv 2205.05198, equations 1 and 2, without the two terms of
  // dropout: masks (2·sbh + a·s²·b) and result (2·a·s²·b).
  const gptLayerBytes = (s: number, b: number, h: number, a: number, t: number): number =>
    s * b * h * (8 + 24 / t) + (2 * a * s ** 2 * b) / t;

  test("of a GPT layer are as published, on any number of ranks", () => {
    const shape = modelNamed("gpt-2-medium") as TransformerShape;
    for (const tensorParallel of [1, 2, 4, 8]) {
      const layer = partsOf(shape, { ...bf16, batch: 3, flashAttention: false, tensorParallel }).find(
        ({ name }) => name === "layer",
      )!;
      const saved = operatorsOf(layer).reduce((sum, { savedBytes }) => sum + savedBytes, 0);
      expect(saved).toBe(gptLayerBytes(1024, 3, shape.width, shape.heads, tensorParallel));
    }
  });

  test("decrease by two bytes per adapted input from LoRA to LoRA-FA", () => {
    const shape = modelNamed("llama-2-7b") as TransformerShape;
    const saved = (kind: "lora" | "lora-fa"): number =>
      sumOver(
        partsOf(shape, { ...bf16, adapters: { kind, rank: 8, projections: ["query", "value", "down"] } }),
        ({ savedBytes }) => savedBytes,
      );
    // The query and value products read the same input.
    expect(saved("lora") - saved("lora-fa")).toBe(2 * bf16.length * (shape.width + shape.hidden) * shape.layers);
  });

  test("of an adapter are of low rank", () => {
    const shape = modelNamed("llama-2-7b") as TransformerShape;
    const adapters = { rank: 16, projections: ["query", "value"] } as const;
    const trainable = (kind: "lora" | "lora-fa"): number =>
      sumOver(partsOf(shape, { ...bf16, adapters: { kind, ...adapters } }), (operator) => operator.trainable);
    // Hu et al. 2021: 2 · layers · width · rank parameters for each adapted square matrix.
    expect(trainable("lora")).toBe(2 * 2 * shape.layers * shape.width * 16);
    expect(trainable("lora-fa")).toBe(trainable("lora") / 2);
  });
});

test("ranks that share a model hold all of it together, and share its matrix products", () => {
  const powers = fc.constantFrom(1, 2, 4, 8);
  fc.assert(
    fc.property(
      powers,
      fc.constantFrom(...transformers.filter(({ heads }) => heads % 8 === 0)),
      (tensorParallel, shape) => {
        const whole = partsOf(shape, bf16);
        const shared = partsOf(shape, { ...bf16, tensorParallel });
        const products = (parts: typeof whole): number =>
          sumOver(parts, ({ operator, name, forward }) =>
            operator === "matmul" && name !== "head" ? forward.flops : 0,
          );
        expect(products(shared) * tensorParallel).toBeCloseTo(products(whole), -3);
        const parameters = (parts: typeof whole): number => sumOver(parts, ({ trainable }) => trainable);
        expect(parameters(shared) * tensorParallel).toBeGreaterThanOrEqual(parameters(whole));
        expect(parameters(shared) * tensorParallel).toBeLessThan(parameters(whole) * 1.03);
      },
    ),
  );
});

test("rejects invalid shapes", () => {
  const llama = modelNamed("llama-2-70b") as TransformerShape;
  expect(() => checkShape({ ...llama, layers: 0 })).toThrow("layers 0, but a size must be a whole number from 1");
  expect(() => checkShape({ ...llama, heads: 3 })).toThrow("3 heads for a width of 8192");
  expect(() => checkShape({ ...llama, keyValueHeads: 7 })).toThrow("7 heads of keys and values for 64 heads");
  expect(() => modelNamed("llama-3")).toThrow('no model is named "llama-3"; use one of gpt-2, gpt-2-medium');
  for (const shape of architectures) checkShape(shape);
});
