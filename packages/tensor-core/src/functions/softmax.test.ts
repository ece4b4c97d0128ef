import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { valueAndGrad } from "../autodiff/vjp.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { add } from "./elementwise.ts";
import { crossEntropy, crossEntropyPerRow, logSoftmax, softmax } from "./softmax.ts";

const reference = referenceBackend();
const rows = fc.array(fc.double({ min: -50, max: 50, noNaN: true }), { minLength: 1, maxLength: 12 });

describe("softmax", () => {
  test("is a distribution, is not moved by a shift, and its logarithm is logSoftmax", async () => {
    await fc.assert(
      fc.asyncProperty(rows, fc.double({ min: -1e3, max: 1e3, noNaN: true }), async (values, shift) => {
        const fn = (x: Tensor): readonly Tensor[] => [softmax(x), softmax(add(x, shift)), logSoftmax(x)];
        const [plain, shifted, logarithm] = (await evaluate(fn, reference)(NdArray.from(values))) as unknown as [NdArray, NdArray, NdArray];
        expect(plain.toNumbers().reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 5);
        plain.toNumbers().forEach((value, i) => {
          expect(shifted.toNumbers()[i]).toBeCloseTo(value, 6);
          expect(Math.exp(logarithm.toNumbers()[i]!)).toBeCloseTo(value, 6);
        });
      }),
      { numRuns: 50 },
    );
  });

  test("works along any dimension", async () => {
    const y = await evaluate((x: Tensor) => softmax(x, 0), reference)(NdArray.from([0, 5, 0, 5], [2, 2]));
    expect((y as NdArray).toNumbers()).toEqual([0.5, 0.5, 0.5, 0.5]);
  });
});

describe("cross-entropy", () => {
  test("of equal logits is the logarithm of the number of classes; its gradient is softmax − onehot over the batch", async () => {
    const fn = (x: Tensor, labels: Tensor): readonly Tensor[] => valueAndGrad((own: Tensor) => crossEntropy(own, labels))(x);
    const [loss, gradient] = (await evaluate(fn, reference)(NdArray.zeros("f32", [2, 4]), NdArray.from([1, 3], [2], "i32"))) as unknown as [
      NdArray,
      NdArray,
    ];
    expect(loss.item()).toBeCloseTo(Math.log(4), 6);
    expect(gradient.toNumbers()).toEqual([0.125, -0.375, 0.125, 0.125, 0.125, 0.125, 0.125, -0.375]);
  });

  test("names the shapes that do not fit", async () => {
    const run = evaluate((x: Tensor, labels: Tensor) => crossEntropyPerRow(x, labels), reference);
    await expect(run(NdArray.zeros("f32", [2, 4]), NdArray.zeros("i32", [4]))).rejects.toThrow(
      /f32\[2, 4\] need one label per row, but labels are i32\[4\]/,
    );
    await expect(run(NdArray.zeros("f32", [2, 4]), NdArray.zeros("f32", [2]))).rejects.toThrow(/it takes f32\[N, C\] and i32\[N\]/);
  });
});
