import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { randomKey } from "../random.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { reshape } from "./movement.ts";
import { dequantize, quantize } from "./quantization.ts";
import { foldIn } from "./random.ts";
import { stack } from "./movement.ts";

const reference = referenceBackend();
const widths = [8, 4, 2] as const;
const rows = fc.integer({ min: 1, max: 4 }).chain((count) =>
  fc.integer({ min: 1, max: 9 }).chain((size) =>
    fc.array(fc.array(fc.float({ min: -1e3, max: 1e3, noNaN: true }), { minLength: size, maxLength: size }), {
      minLength: count,
      maxLength: count,
    }),
  ),
);

const there =
  (bits: 8 | 4 | 2, key?: Tensor) =>
  (x: Tensor): readonly Tensor[] => {
    const { codes, scale } = quantize(x, key === undefined ? { bits } : { bits, key });
    return [dequantize(codes, scale, { bits, count: x.shape.at(-1)! }), scale, codes];
  };

describe("quantize", () => {
  test.each(widths)("with %i bits is at most half a step away, at most a step with a key", async (bits) => {
    await fc.assert(
      fc.asyncProperty(rows, fc.nat(), async (values, seed) => {
        const shape = [values.length, values[0]!.length];
        const x = NdArray.from(values.flat(), shape);
        const [near, scale, codes] = (await evaluate(there(bits), reference)(x)) as readonly NdArray[];
        const [random] = (await evaluate((own: Tensor, key: Tensor) => there(bits, key)(own), reference)(
          x,
          randomKey(seed),
        )) as readonly NdArray[];
        expect(codes!.shape).toEqual([shape[0], Math.ceil((shape[1]! * bits) / 8)]);
        x.toNumbers().forEach((value, i) => {
          const step = scale!.toNumbers()[Math.floor(i / shape[1]!)]!;
          const rounding = 1e-6 * Math.abs(value) + 2 ** -15 * step;
          expect(Math.abs(near!.toNumbers()[i]! - value)).toBeLessThanOrEqual(step / 2 + rounding);
          expect(Math.abs(random!.toNumbers()[i]! - value)).toBeLessThanOrEqual(step + rounding);
        });
      }),
      { numRuns: 40 },
    );
  });

  test("keeps the largest value, zero, and rows of zeros; NaN and infinities spread over their row", async () => {
    const x = NdArray.from([0, 5, -2, 0, 0, 0, 1, NaN, 2, 1, Infinity, -3], [4, 3]);
    for (const bits of widths) {
      const [y] = (await evaluate(there(bits), reference)(x)) as readonly NdArray[];
      const numbers = y!.toNumbers();
      expect(numbers.slice(0, 2)).toEqual([0, 5]);
      expect(numbers.slice(3, 6)).toEqual([0, 0, 0]);
      expect(numbers.slice(6)).toEqual([NaN, NaN, NaN, NaN, NaN, NaN]);
    }
  });

  test("with a key is right on average", async () => {
    const draws = 400;
    const values = [1, 0.123, -0.777, 0.5004, -0.031, 0.9981];
    for (const bits of widths) {
      const fn = (x: Tensor, key: Tensor): Tensor =>
        stack(Array.from({ length: draws }, (_, i) => reshape(there(bits, foldIn(key, i))(x)[0]!, [values.length])));
      const y = (await evaluate(fn, reference)(NdArray.from(values, [1, values.length]), randomKey(5))) as NdArray;
      const step = 1 / (2 ** (bits - 1) - 1);
      values.forEach((value, i) => {
        let mean = 0;
        for (let draw = 0; draw < draws; draw++) mean += y.toNumbers()[draw * values.length + i]! / draws;
        // The standard deviation of a sample is at most half a step. Tolerance: four standard errors of the mean.
        expect(Math.abs(mean - value)).toBeLessThan((4 * 0.5 * step) / Math.sqrt(draws));
      });
    }
  });

  test("rejects other dtypes, scalars, other widths and codes that do not fit", async () => {
    const x = NdArray.from([1, 2, 3]);
    const refused = (fn: (own: Tensor) => Tensor, input: NdArray = x): Promise<unknown> =>
      evaluate(fn, reference)(input);
    await expect(refused((own) => quantize(own).codes, NdArray.from([1], [1], "i32"))).rejects.toThrow(/expected f32/);
    await expect(refused((own) => quantize(own).codes, NdArray.scalar(1))).rejects.toThrow(/expected f32/);
    await expect(refused((own) => quantize(own, { bits: 3 as 4 }).codes)).rejects.toThrow(/use 8, 4 or 2/);
    const short = (own: Tensor): Tensor => {
      const { codes, scale } = quantize(own, { bits: 4 });
      return dequantize(codes, scale, { bits: 4, count: 5 });
    };
    await expect(refused(short)).rejects.toThrow(/5 codes of 4 bits/);
  });
});
