import { evaluate, matmul, NdArray, referenceBackend, swapDims, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newtonInverseRoot } from "./newton-inverse-root.ts";

const run = <R>(fn: (x: Tensor) => R, x: NdArray) => evaluate(fn as (x: Tensor) => Tensor, referenceBackend())(x);

/**
 * Returns the symmetric matrix `Q diag(d) Qᵀ` with eigenvalues d. Q is a random orthogonal matrix from Gram–Schmidt.
 */
const withEigenvalues = (values: readonly number[], seed: number): number[][] => {
  const n = values.length;
  const raw = normalArray([n, n], seed).toNumbers();
  const q: number[][] = [];
  for (let i = 0; i < n; i++) {
    let v = raw.slice(i * n, (i + 1) * n);
    for (const u of [...q, ...q]) {
      const along = u.reduce((sum, value, k) => sum + value * v[k]!, 0);
      v = v.map((value, k) => value - along * u[k]!);
    }
    const length = Math.hypot(...v);
    q.push(v.map((value) => value / length));
  }
  return q[0]!.map((_, i) =>
    q[0]!.map((__, j) => values.reduce((sum, value, k) => sum + value * q[k]![i]! * q[k]![j]!, 0)),
  );
};

describe("newtonInverseRoot", () => {
  test("X^p A is the identity, for condition numbers up to 10⁴ and any scale", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(1, 2, 4, 8),
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: -10, max: 10 }),
        fc.nat({ max: 99 }),
        async (p, n, exponent, seed) => {
          const values = Array.from({ length: n }, (_, i) => 10 ** (exponent - (4 * i) / Math.max(1, n - 1)));
          const a = NdArray.from(withEigenvalues(values, seed + 1));
          const product = await run((x) => {
            const root = newtonInverseRoot(x, { p, ridge: 1e-9 });
            let power = root;
            for (let done = 1; done < p; done *= 2) power = matmul(power, power);
            return matmul(power, x);
          }, a);
          product.toNumbers().forEach((value, at) => {
            const expected = Math.floor(at / n) === at % n ? 1 : 0;
            // The matrix itself is rounded to f32: an error slightly above 10⁴ times 2⁻²⁴.
            expect(Math.abs(value - expected)).toBeLessThan(0.02);
          });
        },
      ),
      { numRuns: 40 },
    );
  });

  test("all results of a batch with a rank-one matrix and zeros are finite, symmetric and damped", async () => {
    const a = NdArray.from([9, 0, 0, 0, 0, 0, 0, 0], [2, 2, 2]);
    const root = (await run((x) => newtonInverseRoot(x, { p: 2, ridge: 1e-6 }), a)).toNumbers();
    expect(root[0]).toBeCloseTo(1 / 3, 5);
    expect(root[3]! / 333.3).toBeCloseTo(1, 2); // 1 / √(9 · 10⁻⁶)
    expect(root.slice(4)).toEqual([expect.closeTo(1, 5), 0, 0, expect.closeTo(1, 5)]);
    const skew = await run(
      (x) => {
        const y = newtonInverseRoot(x, { p: 4 });
        return matmul(y, swapDims(y, -1, -2));
      },
      NdArray.from(withEigenvalues([1, 2, 3], 5)),
    );
    expect(skew.toNumbers().every(Number.isFinite)).toBe(true);
  });

  test("rejects invalid arguments", async () => {
    await expect(run((x) => newtonInverseRoot(x, { p: 2 }), NdArray.from([1, 2]))).rejects.toThrow(
      /\[2\] is not square/,
    );
    await expect(run((x) => newtonInverseRoot(x, { p: 3 }), NdArray.from([1], [1, 1]))).rejects.toThrow(
      /p is 3.*power of two/,
    );
  });
});
