import { createCpuBackend } from "@skein/cpu-kernels";
import {
  applyUpdates,
  cast,
  type Backend,
  jit,
  matmul,
  mixedPrecision,
  multiply,
  NdArray,
  referenceBackend,
  sgd,
  sum,
  type Tensor,
  valueAndGrad,
} from "@skein/tensor-core";
import { beforeAll, describe, expect, test } from "vitest";
import { gpt, type Model, mlp } from "../src/index.ts";
import recorded from "./bf16-from-pytorch.json" with { type: "json" };

/** Returns pseudorandom integers from 0 to 10006, computed with the formula of bf16-from-pytorch.py. */
const whole = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, i) => (7919 * i + 104_729 * seed + 31 * ((i * i) % 10_007)) % 10_007);

const size = (shape: readonly number[]): number => shape.reduce((product, one) => product * one, 1);

/** Returns pseudorandom numbers from -scale to scale. */
const real = (shape: readonly number[], seed: number, scale: number): NdArray =>
  NdArray.from(
    whole(size(shape), seed).map((value) => ((2 * value) / 10_006 - 1) * scale),
    shape,
  );
const same = (value: number, width: number): NdArray => NdArray.from(new Float32Array(width).fill(value), [width]);

const mlpSizes = [12, 32, 32, 5];
const [vocabulary, length, width, numLayers, numHeads] = [24, 12, 16, 2, 2];
const samples = whole(8 * (length + 1), 5).map((value) => value % vocabulary);
const windows = (from: number): NdArray =>
  NdArray.from(
    Array.from({ length: 8 }, (_, row) => samples.slice(row * (length + 1) + from).slice(0, length)).flat(),
    [8, length],
    "i32",
  );
const norm = (): object => ({ gain: same(1, width), shift: same(0, width) });

const problems: Record<"mlp" | "gpt", { model: Model; params: object; batch: { inputs: NdArray; labels: NdArray } }> = {
  mlp: {
    model: mlp({ sizes: mlpSizes }) as Model,
    params: {
      layers: [0, 1, 2].map((i) => ({
        weight: real([mlpSizes[i]!, mlpSizes[i + 1]!], 10 + i, Math.sqrt(6 / mlpSizes[i]!)),
        bias: real([mlpSizes[i + 1]!], 20 + i, 0.1),
      })),
    },
    batch: {
      inputs: real([16, 12], 1, 2),
      labels: NdArray.from(
        whole(16, 2).map((value) => value % 5),
        [16],
        "i32",
      ),
    },
  },
  gpt: {
    model: gpt({
      vocabulary,
      contextLength: length,
      width,
      numLayers,
      numHeads,
      positions: "learned",
      norm: "layer",
    }) as unknown as Model,
    params: {
      embedding_VD: real([vocabulary, width], 30, 0.5),
      positions_TD: real([length, width], 31, 0.5),
      blocks: Array.from({ length: numLayers }, (_, layer) => {
        const at = 40 + 10 * layer;
        const square = (k: number): NdArray => real([width, width], at + k, 0.4);
        return {
          attentionNorm: norm(),
          query_DD: square(0),
          key_DD: square(1),
          value_DD: square(2),
          output_DD: square(3),
          feedForwardNorm: norm(),
          up_DF: real([width, 4 * width], at + 4, 0.4),
          down_FD: real([4 * width, width], at + 5, 0.2),
        };
      }),
      finalNorm: norm(),
    },
    batch: { inputs: windows(0), labels: windows(1) },
  },
};

/** Runs training steps. Returns the loss before each step. */
const train = async (name: "mlp" | "gpt", kind: "f32" | "bf16", backend: Backend): Promise<number[]> => {
  const { model, params, batch } = problems[name];
  const { rate } = recorded[name];
  const optimizer = sgd({ learningRate: rate });
  const step = (own: unknown, inputs: Tensor, labels: Tensor): unknown => {
    const [loss, gradients] = valueAndGrad(
      (one: unknown) => model.loss(one, {}, { inputs, labels } as never, { train: true })[0],
    )(own as never);
    const [updates] = optimizer.update(gradients, optimizer.init(own), { params: own });
    return [loss, applyUpdates(own, updates)];
  };
  const compiled = jit(step as never, backend, {
    passes: kind === "bf16" ? [(graph) => mixedPrecision(graph, { dtype: "bf16" })] : [],
  }) as unknown as ((own: unknown, inputs: NdArray, labels: NdArray) => Promise<[never, unknown]>) & {
    release(): void;
  };
  const losses: number[] = [];
  let own: unknown = params;
  for (let i = 0; i < recorded[name].f32.length; i++) {
    const [loss, next] = await compiled(own, batch.inputs, batch.labels);
    losses.push((await backend.download(loss)).toNumbers()[0]!);
    own = next;
  }
  compiled.release();
  return losses;
};

const furthest = (losses: readonly number[], others: readonly number[]): number =>
  Math.max(...losses.map((loss, i) => Math.abs(loss - others[i]!) / others[i]!));

describe("losses of twenty steps compared with PyTorch's", () => {
  let cpu: Backend;
  beforeAll(async () => {
    cpu = await createCpuBackend();
  });

  test.each(["mlp", "gpt"] as const)("%s in f32", async (name) => {
    expect(furthest(await train(name, "f32", cpu), recorded[name].f32)).toBeLessThan(1e-4);
  });

  // Products read and store bf16 and accumulate in f32. PyTorch also rounds the gradients of weights, which are f32 in
  // Skein, and the values between the two products of an attention. So the losses are equal only for the MLP before the
  // first step.
  test.each([
    ["mlp", 1e-6, 2 ** -8],
    ["gpt", 2 ** -13, 2 ** -10],
  ] as const)("%s with products of bf16", async (name, first, later) => {
    const losses = await train(name, "bf16", cpu);
    const { casts } = recorded[name];
    expect(furthest(losses.slice(0, 1), casts)).toBeLessThan(first);
    expect(furthest(losses, casts)).toBeLessThan(later);
    // If bf16 and f32 losses were equal, no value would have been rounded.
    expect(furthest(losses, recorded[name].f32)).toBeGreaterThan(2 ** -11);
    expect(furthest(losses, await train(name, "bf16", referenceBackend()))).toBeLessThan(2 ** -11);
  });

  // Autocast also rounds sums, and values between products, with a relative error of 2⁻⁸ each time; a loss is the mean
  // of many such values.
  test.each([
    ["mlp", 2 ** -6],
    ["gpt", 2 ** -10],
  ] as const)("%s compared with autocast on a CPU without products of bf16", async (name, tolerance) => {
    expect(furthest(await train(name, "bf16", cpu), recorded[name].autocast)).toBeLessThan(tolerance);
  });

  test("a product and its gradients equal PyTorch's within one rounding", async () => {
    const operands = [real([6, 40], 60, 2), real([40, 5], 61, 2)] as const;
    const factors = real([6, 5], 62, 1);
    const of = jit(
      ((x: Tensor, weight: Tensor, c: Tensor) => [
        cast(matmul(cast(x, "bf16"), cast(weight, "bf16")), "f32"),
        ...valueAndGrad(([own, matrix]: readonly [Tensor, Tensor]) =>
          sum(multiply(cast(matmul(cast(own, "bf16"), cast(matrix, "bf16")), "f32"), c)),
        )([x, weight])[1],
      ]) as never,
      cpu,
    ) as unknown as (...args: readonly NdArray[]) => Promise<never[]>;
    const results = await of(...operands, factors);
    for (const [i, name] of (["y", "x", "weight"] as const).entries()) {
      const ours = (await cpu.download(results[i]!)).toNumbers();
      // The last bit of a bf16 value may differ if two sums with different orders of addition are rounded in different
      // directions.
      expect(
        ours.filter((value, at) => Math.abs(value - recorded.product[name][at]!) > 2 ** -7 * Math.abs(value)),
      ).toEqual([]);
      expect(ours.filter((value, at) => value !== recorded.product[name][at]!).length).toBeLessThan(ours.length / 20);
    }
  });
});
