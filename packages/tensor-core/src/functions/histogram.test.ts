import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { cast } from "./elementwise.ts";
import { histogram } from "./reduce.ts";

const reference = referenceBackend();
const run = async (fn: (...inputs: Tensor[]) => Tensor, ...inputs: NdArray[]): Promise<number[]> =>
  ((await evaluate(fn, reference)(...inputs)) as NdArray).toNumbers();

const countsOf = (x: readonly number[], low: number, high: number, bins: number): Promise<number[]> =>
  run((own, from, to) => histogram(own!, from!, to!, bins), NdArray.from(x), NdArray.scalar(low), NdArray.scalar(high));

describe("histogram", () => {
  test("counts written out by hand", async () => {
    expect(await countsOf([0, 0.24, 0.25, 0.5, 0.99, 1, -0.01, 1.01, NaN, Infinity], 0, 1, 4)).toEqual([2, 1, 1, 2]);
    expect(await countsOf([3, 3, 2, 4], 3, 3, 3)).toEqual([0, 0, 2]);
    expect(await countsOf([3, 3, 2, 4], 4, 2, 3)).toEqual([0, 0, 0]);
    expect(await countsOf([0, 1], NaN, 2, 2)).toEqual([0, 0]);
    expect(await countsOf([0, 1], 0, Infinity, 2)).toEqual([0, 0]);
    expect(await countsOf([0, 1], -1e38, 1e38, 2)).toEqual([0, 0]);
    expect(await countsOf([2 ** -149, -(2 ** -149), 0], 0, 0, 2)).toEqual([0, 3]);
  });

  test("is a step function for exact numbers: whole numbers, with a power of two of bins", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: -70, max: 70 }), { maxLength: 60 }),
        fc.integer({ min: 0, max: 5 }),
        async (x, log) => {
          const bins = 2 ** log;
          const expected = new Array<number>(bins).fill(0);
          for (const value of x)
            if (value >= -32 && value <= 32) expected[Math.min(bins - 1, Math.floor(((value + 32) * bins) / 64))]!++;
          expect(await countsOf(x, -32, 32, bins)).toEqual(expected);
        },
      ),
      { numRuns: 100 },
    );
  });

  test("names mismatched shapes", async () => {
    const [x, edge] = [NdArray.from([1, 2]), NdArray.scalar(0)];
    await expect(run((own, low) => histogram(cast(own!, "i32"), low!, low!, 4), x, edge)).rejects.toThrow(
      /dtype i32 is not supported/,
    );
    await expect(run((own, low) => histogram(own!, low!, own!, 4), x, edge)).rejects.toThrow(
      /f32 scalars, got f32\[2\]/,
    );
    await expect(run((own, low) => histogram(own!, low!, low!, 0), x, edge)).rejects.toThrow(
      /bins is 0, but it must be an integer/,
    );
    await expect(run((own, low) => histogram(own!, low!, low!, 65_537), x, edge)).rejects.toThrow(/from 1 to 65536/);
  });
});
