import {
  add,
  ArgumentError,
  conv2d,
  evaluate,
  type NdArray,
  ones,
  randomKey,
  referenceBackend,
  type Shape,
  type Tensor,
  zeros,
} from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { describe, expect, it } from "vitest";
import { glorotUniform } from "./initialisers.ts";
import { applyConv2d, initConv2d, initDense, initEmbedding } from "./layers.ts";
import {
  applyGroupNorm,
  applyLayerNorm,
  applyRmsNorm,
  initGroupNorm,
  initLayerNorm,
  initRmsNorm,
} from "./normalisation.ts";

const backend = referenceBackend();
const run = async (
  fn: (key: Tensor, x: Tensor) => readonly Tensor[],
  x: NdArray = normalArray([1], 1),
): Promise<NdArray[]> => (await evaluate(fn, backend)(randomKey(3), x)) as unknown as NdArray[];
const deviationOf = (array: NdArray): number =>
  Math.sqrt(array.toNumbers().reduce((sum, value) => sum + value * value, 0) / array.toNumbers().length);

describe("initial parameters", () => {
  it("have the deviation required by fanIn, and zero biases", async () => {
    const [dense, denseBias, kernel, kernelBias, table] = await run((key) => {
      const [first, second] = [initDense(key, [50, 40]), initConv2d(key, [3, 3, 8, 20])];
      return [first.weight, first.bias, second.weight, second.bias, initEmbedding(key, [60, 30])];
    });
    expect([dense!.shape, kernel!.shape, table!.shape]).toEqual([
      [50, 40],
      [3, 3, 8, 20],
      [60, 30],
    ]);
    // He initialization: √(2 / fanIn); within 10 % for 2000, 1440 and 1800 draws.
    expect(deviationOf(dense!) / Math.sqrt(2 / 50)).toBeCloseTo(1, 1);
    expect(deviationOf(kernel!) / Math.sqrt(2 / 72)).toBeCloseTo(1, 1);
    expect(deviationOf(table!) / 0.02).toBeCloseTo(1, 1);
    expect([denseBias!.toNumbers(), kernelBias!.toNumbers()]).toEqual([
      new Array<number>(40).fill(0),
      new Array<number>(20).fill(0),
    ]);
  });

  it("are drawn by the given initialiser", async () => {
    const [own, wanted] = await run((key) => [
      initDense(key, [5, 4], { initialise: glorotUniform }).weight,
      glorotUniform(key, [5, 4]),
    ]);
    expect(own!.toNumbers()).toEqual(wanted!.toNumbers());
  });

  it("are rejected for the shape of another kind of layer", async () => {
    const wrong = run((key) => [initConv2d(key, [8, 20] as never).weight]);
    await expect(wrong).rejects.toThrow(ArgumentError);
    await expect(wrong).rejects.toThrow(/\[8, 20\] has 2 sizes, but \[height, width, in \/ groups, out\] needs 4/);
    await expect(run((key) => [initDense(key, [3, 3, 8, 20] as never).weight])).rejects.toThrow(/\[in, out\] needs 2/);
  });
});

describe("layers", () => {
  it("a convolution adds its bias after the sums, with any options", async () => {
    const weight = [3, 3, 1, 4] as Shape;
    const [own, wanted] = await run(
      (_, x) => {
        const params = { weight: ones(weight), bias: ones([4]) };
        const options = { padding: "same", stride: 2, groups: 2 } as const;
        return [applyConv2d(params, x, options), add(conv2d(x, params.weight, options), 1)];
      },
      normalArray([2, 5, 4, 2], 1),
    );
    expect(own!.toNumbers()).toEqual(wanted!.toNumbers());
  });

  it("norms start without scale and shift: mean 0 and mean square 1 for any input", async () => {
    const norms = await run(
      (_, x) => {
        const wide = add(x, 3);
        return [
          applyLayerNorm(initLayerNorm(6), wide),
          applyGroupNorm(initGroupNorm(6), wide, { groups: 2 }),
          applyRmsNorm(initRmsNorm(6), wide),
          applyGroupNorm({ gain: zeros([6]), shift: ones([6]) }, wide, { groups: 3 }),
        ];
      },
      normalArray([2, 4, 6], 2),
    );
    expect(norms.map(deviationOf).map((value) => Math.round(value * 100) / 100)).toEqual([1, 1, 1, 1]);
    const means = norms.map((array) => array.toNumbers().reduce((sum, value) => sum + value, 0) / 48);
    [0, 0].forEach((mean, i) => expect(means[i]).toBeCloseTo(mean, 5));
    expect(means[2]).toBeGreaterThan(0.5);
    expect(norms[3]!.toNumbers()).toEqual(new Array<number>(48).fill(1));
  });
});
