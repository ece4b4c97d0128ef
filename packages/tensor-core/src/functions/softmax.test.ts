import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { valueAndGrad, vjp } from "../autodiff/vjp.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { add, full } from "./elementwise.ts";
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
    const y = await evaluate((x: Tensor) => softmax(x, { dim: 0 }), reference)(NdArray.from([0, 5, 0, 5], [2, 2]));
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

  test("rows that a mask leaves out have loss and gradient 0, whatever they hold; the others are as if they were alone", async () => {
    const hard = fc.constantFrom(NaN, Infinity, -Infinity, 1e30, 0, 1);
    const row = fc.oneof(
      fc.record({
        counts: fc.constant(true),
        logits: fc.array(fc.integer({ min: -20, max: 20 }), { minLength: 3, maxLength: 3 }),
        label: fc.nat(2),
      }),
      fc.record({
        counts: fc.constant(false),
        logits: fc.array(hard, { minLength: 3, maxLength: 3 }),
        label: fc.constantFrom(-100, 0, 2, 3),
      }),
    );
    const perRow = (x: Tensor, labels: Tensor, mask?: Tensor): readonly Tensor[] => {
      const { value, pullback } = vjp((own: Tensor) => crossEntropyPerRow(own, labels, { ...(mask && { mask }) }), x);
      return [value, pullback(full(labels.shape, 0.5))];
    };
    const [all, alone, mean] = [
      evaluate((x: Tensor, labels: Tensor, mask: Tensor) => perRow(x, labels, mask), reference),
      evaluate((x: Tensor, labels: Tensor) => perRow(x, labels), reference),
      evaluate(
        (x: Tensor, labels: Tensor, mask: Tensor) => valueAndGrad((own: Tensor) => crossEntropy(own, labels, { mask }))(x),
        reference,
      ),
    ];
    const batch = (list: readonly { logits: readonly number[]; label: number }[]): [NdArray, NdArray] => [
      NdArray.from(
        list.flatMap(({ logits }) => logits),
        [list.length, 3],
      ),
      NdArray.from(
        list.map(({ label }) => label),
        [list.length],
        "i32",
      ),
    ];
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 6 }), async (list) => {
        const mask = NdArray.from(
          list.map(({ counts }) => Number(counts)),
          [list.length],
          "bool",
        );
        const counted = list.filter(({ counts }) => counts);
        const numbers = async (arrays: Promise<unknown>): Promise<number[][]> =>
          ((await arrays) as NdArray[]).map((array) => array.toNumbers());
        const [losses, gradient] = await numbers(all(...batch(list), mask));
        const [wantedLosses, wantedGradient] = await numbers(alone(...batch(counted)));
        let next = 0;
        list.forEach(({ counts }, i) => {
          const at = counts ? next++ : -1;
          expect(losses![i]).toBe(counts ? wantedLosses![at] : 0);
          expect(gradient!.slice(3 * i, 3 * i + 3)).toEqual(counts ? wantedGradient!.slice(3 * at, 3 * at + 3) : [0, 0, 0]);
        });
        const [loss, meanGradient] = await numbers(mean(...batch(list), mask));
        if (counted.length === 0) expect(loss).toEqual([NaN]);
        else {
          expect(loss![0]).toBeCloseTo(wantedLosses!.reduce((sum, value) => sum + value, 0) / counted.length, 5);
          expect(meanGradient!.every(Number.isFinite)).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("a mask that is no bool for each label is refused", async () => {
    const run = evaluate((x: Tensor, labels: Tensor, mask: Tensor) => crossEntropyPerRow(x, labels, { mask }), reference);
    for (const mask of [NdArray.zeros("bool", [3]), NdArray.zeros("f32", [2])])
      await expect(run(NdArray.zeros("f32", [2, 4]), NdArray.zeros("i32", [2]), mask)).rejects.toThrow(/a bool for each label/);
  });
});
