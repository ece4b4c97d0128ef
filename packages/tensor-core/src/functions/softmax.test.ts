import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { valueAndGrad, vjp } from "../autodiff/vjp.ts";
import { ArgumentError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { add, constant, full, notEqual } from "./elementwise.ts";
import { crossEntropy, type CrossEntropyOptions, crossEntropyPerRow, logSoftmax, softmax } from "./softmax.ts";

const reference = referenceBackend();
const rows = fc.array(fc.double({ min: -50, max: 50, noNaN: true }), { minLength: 1, maxLength: 12 });

describe("softmax", () => {
  test("is a distribution, is invariant under shifts, and its logarithm is logSoftmax", async () => {
    await fc.assert(
      fc.asyncProperty(rows, fc.double({ min: -1e3, max: 1e3, noNaN: true }), async (values, shift) => {
        const fn = (x: Tensor): readonly Tensor[] => [softmax(x), softmax(add(x, shift)), logSoftmax(x)];
        const [plain, shifted, logarithm] = (await evaluate(fn, reference)(NdArray.from(values))) as unknown as [
          NdArray,
          NdArray,
          NdArray,
        ];
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
    const fn = (x: Tensor, labels: Tensor): readonly Tensor[] =>
      valueAndGrad((own: Tensor) => crossEntropy(own, labels))(x);
    const [loss, gradient] = (await evaluate(fn, reference)(
      NdArray.zeros("f32", [2, 4]),
      NdArray.from([1, 3], [2], "i32"),
    )) as unknown as [NdArray, NdArray];
    expect(loss.item()).toBeCloseTo(Math.log(4), 6);
    expect(gradient.toNumbers()).toEqual([0.125, -0.375, 0.125, 0.125, 0.125, 0.125, 0.125, -0.375]);
  });

  test("names mismatched shapes", async () => {
    const run = evaluate((x: Tensor, labels: Tensor) => crossEntropyPerRow(x, labels), reference);
    await expect(run(NdArray.zeros("f32", [2, 4]), NdArray.zeros("i32", [4]))).rejects.toThrow(
      /f32\[2, 4\] need one label per row, but labels are i32\[4\]/,
    );
    await expect(run(NdArray.zeros("f32", [2, 4]), NdArray.zeros("f32", [2]))).rejects.toThrow(
      /expected f32\[N, C\] and i32\[N\]/,
    );
  });

  test("masked rows have loss and gradient 0 for any content, and do not affect other rows", async () => {
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
        (x: Tensor, labels: Tensor, mask: Tensor) =>
          valueAndGrad((own: Tensor) => crossEntropy(own, labels, { mask }))(x),
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
          expect(gradient!.slice(3 * i, 3 * i + 3)).toEqual(
            counts ? wantedGradient!.slice(3 * at, 3 * at + 3) : [0, 0, 0],
          );
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

  test("rejects a mask that does not have a bool per label", async () => {
    const run = evaluate(
      (x: Tensor, labels: Tensor, mask: Tensor) => crossEntropyPerRow(x, labels, { mask }),
      reference,
    );
    for (const mask of [NdArray.zeros("bool", [3]), NdArray.zeros("f32", [2])])
      await expect(run(NdArray.zeros("f32", [2, 4]), NdArray.zeros("i32", [2]), mask)).rejects.toThrow(
        /a bool for each label/,
      );
  });

  describe("ignored labels and label smoothing", () => {
    const logits = NdArray.from([1, 2, -1, 0.5, 0, 3, NaN, Infinity, 1, -2, 4, 0], [4, 3]);
    const labels = NdArray.from([1, 0, -100, 2], [4], "i32");
    const run = async (options: CrossEntropyOptions, x = logits): Promise<[loss: number[], gradient: number[]]> => {
      const fn = (own: Tensor, l: Tensor): readonly Tensor[] =>
        valueAndGrad((z: Tensor) => crossEntropy(z, l, options))(own);
      const results = (await evaluate(fn, reference)(x, labels)) as unknown as [NdArray, NdArray];
      return results.map((array) => array.toNumbers()) as [number[], number[]];
    };
    /**
     * Computes the expected loss by definition, in f64: target probability 1 − ε + ε/C for the label and ε/C for all
     * other classes; mean over rows 0, 1 and 3.
     */
    const byHand = (smoothing: number): number => {
      const rows = logits.toNumbers();
      const losses = [0, 1, 3].map((row) => {
        const own = rows.slice(3 * row, 3 * row + 3);
        const total = own.reduce((sum, value) => sum + Math.exp(value), 0);
        return -own.reduce((sum, value, i) => {
          const target = smoothing / 3 + (i === labels.toNumbers()[row] ? 1 - smoothing : 0);
          return sum + target * Math.log(Math.exp(value) / total);
        }, 0);
      });
      return losses.reduce((sum, value) => sum + value, 0) / 3;
    };

    test.each([0, 0.1, 1])("is the mean over the rows whose label counts, smoothed by %d", async (labelSmoothing) => {
      const [loss, gradient] = await run({ ignoreIndex: -100, labelSmoothing });
      expect(loss[0]).toBeCloseTo(byHand(labelSmoothing), 6);
      expect(gradient.slice(6, 9)).toEqual([0, 0, 0]);
      expect(gradient.every(Number.isFinite)).toBe(true);
    });

    test("an ignored label acts as a mask; both can be combined", async () => {
      const fn = (x: Tensor, l: Tensor): readonly Tensor[] => [
        crossEntropyPerRow(x, l, { ignoreIndex: -100 }),
        crossEntropyPerRow(x, l, { mask: notEqual(l, -100) }),
        crossEntropyPerRow(x, l, { ignoreIndex: -100, mask: notEqual(l, 0) }),
      ];
      const [ignored, masked, both] = ((await evaluate(fn, reference)(logits, labels)) as unknown as NdArray[]).map(
        (y) => y.toNumbers(),
      );
      expect(ignored).toEqual(masked);
      expect(both).toEqual([ignored![0], 0, 0, ignored![3]]);
    });

    test("without an ignored label, -100 is out of range and gives NaN", async () => {
      expect((await run({}))[0]).toEqual([NaN]);
    });

    test("smoothing by 0 gives the bits of the plain loss", async () => {
      const x = NdArray.from([9999, 10001, 9998, 1, 2, 3], [2, 3]);
      const fn = (z: Tensor): readonly Tensor[] =>
        [{}, { labelSmoothing: 0 }].map((options) => crossEntropyPerRow(z, constant([2, 0], "i32"), options));
      const [plain, smoothed] = (await evaluate(fn, reference)(x)) as unknown as [NdArray, NdArray];
      expect(smoothed.toNumbers()).toEqual(plain.toNumbers());
    });

    test.each([
      [{ labelSmoothing: 1.1 }, /labelSmoothing 1\.1 is not a share/],
      [{ labelSmoothing: NaN }, /labelSmoothing NaN/],
      [{ ignoreIndex: 0.5 }, /ignoreIndex 0\.5 is not a label/],
      [{ smoothing: 0.1 }, /smoothing/],
      [0.1, /crossEntropy\(logits, labels, \{/],
    ])("rejects %j", async (options, message) => {
      await expect(run(options as never)).rejects.toThrow(ArgumentError);
      await expect(run(options as never)).rejects.toThrow(message);
    });
  });
});
