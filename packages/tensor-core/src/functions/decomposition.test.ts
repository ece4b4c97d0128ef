import { describe, expect, test } from "vitest";
import { valueAndGrad } from "../autodiff/vjp.ts";
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { eigh, qr } from "./decomposition.ts";
import { multiply } from "./elementwise.ts";
import { expandDims } from "./movement.ts";
import { sum } from "./reduce.ts";

const backend = referenceBackend();
const square = (size: number, entry: (i: number, j: number) => number): NdArray =>
  NdArray.from(
    Array.from({ length: size * size }, (_, at) => entry(Math.floor(at / size), at % size)),
    [size, size],
  );

describe("the gradient of eigh where eigenvalues are equal", () => {
  const cubes = (a: Tensor): Tensor => {
    const { values } = eigh(a);
    return sum(multiply(values, multiply(values, values)));
  };

  test.each([
    ["identity", square(3, (i, j) => Number(i === j))],
    ["two equal values", square(3, (i, j) => (i === j ? 2 : 1))],
    ["none equal", square(3, (i, j) => 1 + i + j + (i === j ? i * i : 0))],
  ])("is correct for symmetric functions of them, Σ λ³: %s", async (_, a) => {
    const gradient = (await evaluate((x: Tensor) => valueAndGrad(cubes)(x)[1], backend)(a)) as NdArray;
    const x = a.toNumbers();
    gradient.toNumbers().forEach((value, at) => {
      const [i, j] = [Math.floor(at / 3), at % 3];
      const squared = [0, 1, 2].reduce((total, k) => total + x[3 * i + k]! * x[3 * k + j]!, 0);
      // An entry of the lower triangle also represents its mirror image; the upper triangle is not read.
      expect(value).toBeCloseTo(i === j ? 3 * squared : i > j ? 6 * squared : 0, 3);
    });
  });

  test("is finite for single vectors, for which it does not exist", async () => {
    const loss = (a: Tensor): Tensor => sum(multiply(eigh(a).vectors, expandDims(eigh(a).values, { dims: -1 })));
    const run = evaluate((x: Tensor) => valueAndGrad(loss)(x)[1], backend);
    for (const a of [square(4, (i, j) => Number(i === j)), square(4, () => 0), square(4, () => 1)])
      expect(((await run(a)) as NdArray).toNumbers().every(Number.isFinite)).toBe(true);
  });
});

describe("rejected arguments", () => {
  const refused = (fn: (x: Tensor) => unknown, shape: readonly number[]): void => {
    const spec = { dtype: "f32" as const, shape };
    expect(() => trace((x: Tensor) => fn(x) as Tensor, [spec] as never)).toThrow(ShapeError);
  };

  test("eigh accepts square matrices, qr matrices with at least as many rows as columns", () => {
    refused((x) => eigh(x).values, [2, 3]);
    refused((x) => eigh(x).values, [4]);
    refused((x) => qr(x).q, [2, 3]);
    refused((x) => qr(x).q, [3]);
  });
});
