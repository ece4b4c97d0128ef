import { evaluate, matmul, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { expect, test } from "vitest";
import { inverseRoot } from "./inverse-root.ts";
import { newtonInverseRoot } from "./newton-inverse-root.ts";

const run = (fn: (x: Tensor) => Tensor, x: NdArray): Promise<NdArray> =>
  evaluate(fn, referenceBackend())(x) as Promise<NdArray>;
const gram = (x: Tensor): Tensor => matmul(x, x, { transposeB: true });

test.each([1, 2, 4, 8])("the root of %d equals that of the Newton iteration", async (p) => {
  const x = normalArray([3, 5, 7], p);
  const [byEigen, byNewton] = [
    await run((y) => inverseRoot(gram(y), { p, ridge: 1e-9 }), x),
    await run((y) => newtonInverseRoot(gram(y), { p, ridge: 1e-9 }), x),
  ];
  const expected = byNewton.toNumbers();
  const size = Math.max(...expected.map(Math.abs));
  byEigen.toNumbers().forEach((value, i) => expect(Math.abs(value - expected[i]!)).toBeLessThan(2e-3 * size));
});

test("all results of a batch with a rank-one matrix and zeros are finite and damped", async () => {
  const a = NdArray.from([9, 0, 0, 0, 0, 0, 0, 0], [2, 2, 2]);
  const root = (await run((x) => inverseRoot(x, { p: 2, ridge: 1e-6 }), a)).toNumbers();
  expect(root[0]).toBeCloseTo(1 / 3, 5);
  expect(root[3]! / 333.3).toBeCloseTo(1, 3); // 1 / √(9 · 10⁻⁶)
  expect(root.slice(4)).toEqual([1, 0, 0, 1]);
});

test("rejects invalid arguments", async () => {
  await expect(run((x) => inverseRoot(x, { p: 2 }), NdArray.from([1, 2]))).rejects.toThrow(/\[2\] is not square/);
  await expect(run((x) => inverseRoot(x, { p: 0 }), NdArray.from([1], [1, 1]))).rejects.toThrow(/p is 0.*positive/);
});
