import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { vjp } from "../autodiff/vjp.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { full } from "./elementwise.ts";
import { prod } from "./product.ts";

const product = (values: readonly number[]): number => values.reduce((a, b) => a * b, 1);
const withGradient = (x: Tensor): readonly Tensor[] => {
  const { value, pullback } = vjp((own: Tensor) => prod(own), x);
  return [value, pullback(full([], 1))];
};

describe("prod", () => {
  test("is the product, its gradient the product of the others: without, with one and with several zeros", async () => {
    const run = evaluate(withGradient, referenceBackend());
    // Powers of two and zeros, so that all products are exact in any order.
    const entries = fc.array(fc.constantFrom(0, 0.5, 1, 2, -1, -4), { maxLength: 11 });
    await fc.assert(
      fc.asyncProperty(entries, async (values) => {
        const [value, gradient] = (await run(NdArray.from(values, [values.length]))) as unknown as [NdArray, NdArray];
        expect(value.item() + 0).toBe(product(values) + 0);
        const others = values.map((_, i) => product(values.filter((_, j) => j !== i)) + 0);
        expect(gradient.toNumbers().map((own) => own + 0)).toEqual(others);
      }),
      { numRuns: 100 },
    );
  });

  test("reduces the given dimensions, and keeps them on request", async () => {
    const x = NdArray.from([1, 2, 3, 4, 5, 6], [3, 2], "i32");
    const fn = (own: Tensor): readonly Tensor[] => [
      prod(own),
      prod(own, { dims: 0 }),
      prod(own, { dims: -1, keepDims: true }),
    ];
    const results = (await evaluate(fn, referenceBackend())(x)) as unknown as NdArray[];
    expect(results.map((array) => [array.shape, array.toNumbers()])).toEqual([
      [[], [720]],
      [[2], [15, 48]],
      [
        [3, 1],
        [2, 12, 30],
      ],
    ]);
  });

  test("rejects dtypes without products", async () => {
    await expect(evaluate((x: Tensor) => prod(x), referenceBackend())(NdArray.zeros("u8", [2]))).rejects.toThrow(
      /prod: u8\[2\] is not supported, prod takes f32, i32 and u32/,
    );
  });
});
