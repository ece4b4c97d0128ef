import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import { seeded } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { packTriangle, unpackTriangle } from "./triangle.ts";

test("packs half of a symmetric matrix in n(n + 1)/2 numbers, and restores the whole", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.nat({ max: 99 }), async (n, seed) => {
      const random = seeded(seed);
      const lower = Array.from({ length: n }, () => Array.from({ length: n }, () => Math.fround(random())));
      const whole = lower.map((row, i) => row.map((value, j) => (j <= i ? value : lower[j]![i]!)));
      // Values above the diagonal are ignored.
      const half = lower.map((row, i) => row.map((value, j) => (j <= i ? value : NaN)));
      const run = evaluate((a: Tensor): [Tensor, Tensor] => {
        const packed = packTriangle(a);
        return [packed, unpackTriangle(packed, n)];
      }, referenceBackend());
      const [packed, again] = await run(NdArray.from(half, [n, n]));
      expect(packed.shape).toEqual([(n * (n + 1)) / 2]);
      expect([...packed.toNumbers()].sort()).toEqual(lower.flatMap((row, i) => row.slice(0, i + 1)).sort());
      expect(again.toNumbers()).toEqual(whole.flat());
      // Several matrices are packed independently.
      const [three, back] = await run(NdArray.from([...half, ...whole, ...half].flat(), [3, n, n]));
      expect(three.toNumbers()).toEqual([1, 2, 3].flatMap(() => packed.toNumbers()));
      expect(back.toNumbers()).toEqual([1, 2, 3].flatMap(() => whole.flat()));
    }),
    { numRuns: 40 },
  );
});

test("rejects a matrix that is not square, and a wrong number of packed values", async () => {
  const run = (fn: (x: Tensor) => Tensor, shape: readonly number[]): Promise<unknown> =>
    evaluate(
      fn,
      referenceBackend(),
    )(
      NdArray.from(
        Array.from({ length: shape.reduce((a, b) => a * b) }, () => 1),
        shape,
      ),
    );
  await expect(run(packTriangle, [2, 3])).rejects.toThrow(/\[2, 3\] is not a square matrix/);
  await expect(run((x) => unpackTriangle(x, 3), [5])).rejects.toThrow(/\[5\] is not a packed triangle.*6 numbers/);
});
