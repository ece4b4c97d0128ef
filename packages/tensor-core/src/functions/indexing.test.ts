import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { full, multiply } from "./elementwise.ts";
import { embedding, gather, scatterAdd } from "./indexing.ts";
import { sum } from "./reduce.ts";

const reference = referenceBackend();
const run = async (fn: (...inputs: Tensor[]) => Tensor, ...inputs: NdArray[]): Promise<number[]> =>
  ((await evaluate(fn, reference)(...inputs)) as NdArray).toNumbers();
const integers = (values: readonly number[], shape: readonly number[] = [values.length]): NdArray => NdArray.from(values, shape, "i32");

describe("gather and scatterAdd", () => {
  test("values written out by hand", async () => {
    const table = NdArray.from([1, 2, 3, 4, 5, 6], [3, 2]);
    expect(await run((x, i) => embedding(x!, i!), table, integers([2, 0, 2]))).toEqual([5, 6, 1, 2, 5, 6]);
    expect(await run((x, i) => gather(x!, i!, 1), table, integers([1, 1, 0]))).toEqual([2, 2, 1, 4, 4, 3, 6, 6, 5]);
    expect(await run((x, i) => embedding(x!, i!), table, integers([3, -1]))).toEqual([NaN, NaN, NaN, NaN]);
    expect(
      await run((x, i, u) => scatterAdd(x!, i!, u!), NdArray.from([0, 0, 10]), integers([1, 1, 2, 3, -1]), NdArray.from([1, 2, 3, 4, 5])),
    ).toEqual([0, 3, 13]);
  });

  test("are adjoint: ⟨gather(x), u⟩ = ⟨x, scatterAdd(0, u)⟩, indices outside included", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.integer({ min: -2, max: 7 }), { minLength: 1, maxLength: 9 }),
        async (size, indices) => {
          const x = NdArray.from(
            Array.from({ length: size * 3 }, (_, i) => Math.sin(i + 1)),
            [size, 3],
          );
          const u = NdArray.from(
            Array.from({ length: indices.length * 3 }, (_, i) => Math.cos(2 * i)),
            [indices.length, 3],
          );
          const left = await run((x, i, u) => sum(multiply(gather(x!, i!, 0, { outside: "zero" }), u!)), x, integers(indices), u);
          const right = await run((x, i, u) => sum(multiply(x!, scatterAdd(full([size, 3], 0), i!, u!))), x, integers(indices), u);
          expect(left[0]).toBeCloseTo(right[0]!, 5);
        },
      ),
      { numRuns: 50 },
    );
  });

  test("name what does not fit", async () => {
    const x = NdArray.zeros("f32", [3, 2]);
    await expect(run((x, i) => gather(x!, i!), x, NdArray.zeros("f32", [2]))).rejects.toThrow(/indices are f32\[2\], they must be i32/);
    await expect(run((x, i, u) => scatterAdd(x!, i!, u!), x, integers([0]), NdArray.zeros("f32", [2]))).rejects.toThrow(
      /updates f32\[2\] do not fit base f32\[3, 2\] with indices i32\[1\]; they must be f32\[1, 2\]/,
    );
  });
});
