import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { vjp } from "../autodiff/vjp.ts";
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { argsort, sort, type SortOptions } from "./sort.ts";

const run = async (x: NdArray, options: SortOptions = {}): Promise<[number[], number[]]> => {
  const sorted = await evaluate((own: Tensor) => sort(own, options), referenceBackend())(x);
  return (sorted as unknown as NdArray[]).map((array) => array.toNumbers()) as [number[], number[]];
};

// Few different values, so that many entries are equal.
const entries = fc.array(fc.constantFrom(-Infinity, -2, -0.5, 0, 1, 3, Infinity, NaN), { maxLength: 40 });
const before = (a: number, b: number): number =>
  (Number.isNaN(a) ? Infinity : a) - (Number.isNaN(b) ? Infinity : b) || 0;

describe("sort", () => {
  test.each([false, true])("is a stable sorting permutation, NaN last (descending: %s)", async (descending) => {
    await fc.assert(
      fc.asyncProperty(entries, async (values) => {
        const rank = (i: number): number => (Number.isNaN(values[i]) ? 1 : 0);
        const wanted = values
          .map((_, i) => i)
          .sort((i, j) => {
            const order = before(values[i]!, values[j]!) || rank(i) - rank(j);
            return (descending ? -order : order) || i - j;
          });
        const [sorted, indices] = await run(NdArray.from(values, [values.length]), { descending });
        expect(indices).toEqual(wanted);
        expect(sorted).toEqual(wanted.map((i) => values[i]));
      }),
      { numRuns: 150 },
    );
  });

  test.each(["i32", "u32"] as const)("argsort of %s is the order of its numbers, equals in theirs", async (dtype) => {
    const [least, most] = dtype === "i32" ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
    const integer = fc.oneof(fc.constantFrom(least, most, most - 1, 0, 1, 2), fc.integer({ min: least, max: most }));
    await fc.assert(
      fc.asyncProperty(fc.array(integer, { maxLength: 40 }), fc.boolean(), async (values, descending) => {
        const wanted = values
          .map((_, i) => i)
          .sort((i, j) => (descending ? values[j]! - values[i]! : values[i]! - values[j]!) || i - j);
        const order = await evaluate(
          (x: Tensor) => argsort(x, { descending }),
          referenceBackend(),
        )(NdArray.from(values, [values.length], dtype));
        expect(order.toNumbers()).toEqual(wanted);
      }),
      { numRuns: 100 },
    );
  });

  test("works along any dimension, and returns the gradient to original positions", async () => {
    const x = NdArray.from([3, 10, 1, 30, 2, 20], [3, 2]);
    expect(await run(x, { dim: 0 })).toEqual([
      [1, 10, 2, 20, 3, 30],
      [1, 0, 2, 2, 0, 1],
    ]);
    const gradient = await evaluate(
      (own: Tensor, g: Tensor) => vjp((y: Tensor) => sort(y, { dim: 0 })[0], own).pullback(g),
      referenceBackend(),
    )(x, NdArray.from([1, 2, 3, 4, 5, 6], [3, 2]));
    expect(gradient.toNumbers()).toEqual([5, 2, 1, 6, 3, 4]);
  });

  test("rejects what it cannot sort", async () => {
    await expect(run(NdArray.zeros("bool", [3]))).rejects.toThrow(
      /sort: bool\[3\] is not supported, sort takes f32, i32, u32; cast/,
    );
    await expect(run(NdArray.zeros("f32", []))).rejects.toThrow(ShapeError);
    await expect(run(NdArray.zeros("f32", [3]), -1 as never)).rejects.toThrow(/sort\(x, \{ dim: -1 \}\)/);
  });
});
