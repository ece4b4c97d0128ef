import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { full } from "./elementwise.ts";
import { batchNorm, batchNormInference, layerNorm, rmsNorm } from "./normalisation.ts";

const reference = referenceBackend();
const run = async (fn: (x: Tensor) => Tensor, x: NdArray): Promise<number[]> =>
  ((await evaluate(fn, reference)(x)) as NdArray).toNumbers();
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const x = NdArray.from([1, 4, -2, 9, 3, 30, -7, 11], [2, 4]);

describe("normalised values", () => {
  test("layer norm gives each row mean 0 and mean square 1", async () => {
    const y = await run((x) => layerNorm(x, full([4], 1), full([4], 0), 0), x);
    for (const row of [y.slice(0, 4), y.slice(4)]) {
      expect(mean(row)).toBeCloseTo(0, 6);
      expect(mean(row.map((value) => value ** 2))).toBeCloseTo(1, 6);
    }
  });

  test("RMS norm gives each row mean square 1 and keeps its direction", async () => {
    const y = await run((x) => rmsNorm(x, full([4], 1), 0), x);
    expect(mean(y.slice(0, 4).map((value) => value ** 2))).toBeCloseTo(1, 6);
    expect(y[1]! / y[0]!).toBeCloseTo(4, 5);
  });

  test("batch norm gives each channel mean 0 and mean square 1, and inference with its statistics repeats it", async () => {
    const fn = (x: Tensor): readonly Tensor[] => {
      const [gamma, beta] = [full([2], 1.5), full([2], -1)];
      const { y, mean, variance } = batchNorm(x, gamma, beta);
      return [
        batchNorm(x, full([2], 1), full([2], 0), 0).y,
        y,
        batchNormInference(x, gamma, beta, mean, variance),
        mean,
        variance,
      ];
    };
    const [unit, y, repeated, means, variances] = (
      (await evaluate(fn, reference)(NdArray.from(x.data as Float32Array, [4, 2]))) as unknown as NdArray[]
    ).map((array) => array.toNumbers());
    expect(unit![0]! + unit![2]! + unit![4]! + unit![6]!).toBeCloseTo(0, 6);
    expect(mean([1, 3, 5, 7].map((i) => unit![i]! ** 2))).toBeCloseTo(1, 6);
    y!.forEach((value, i) => expect(repeated![i]).toBeCloseTo(value, 5));
    expect(means).toEqual([-1.25, 13.5]);
    expect(variances![0]).toBeCloseTo(mean([1, -2, 3, -7].map((value) => (value + 1.25) ** 2)), 5);
  });

  test("a scale of another width is rejected with both shapes", async () => {
    await expect(run((x) => layerNorm(x, full([3], 1), full([4], 0)), x)).rejects.toThrow(
      /gamma is f32\[3\], but rows of f32\[2, 4\] need f32\[4\]/,
    );
  });
});
