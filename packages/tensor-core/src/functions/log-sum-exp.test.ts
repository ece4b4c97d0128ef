import { describe, expect, test } from "vitest";
import { vjp } from "../autodiff/vjp.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { ones } from "./elementwise.ts";
import { logSumExp } from "./log-sum-exp.ts";

const run = async (rows: readonly (readonly number[])[]): Promise<[values: number[], gradient: number[]]> => {
  const fn = (x: Tensor): readonly Tensor[] => {
    const { value, pullback } = vjp((own: Tensor) => logSumExp(own, { dims: 1 }), x);
    return [value, pullback(ones(value.shape))];
  };
  const results = await evaluate(fn, referenceBackend())(NdArray.from(rows.flat(), [rows.length, rows[0]!.length]));
  return (results as unknown as NdArray[]).map((array) => array.toNumbers()) as [number[], number[]];
};

describe("logSumExp", () => {
  test("neither overflows nor underflows, and its gradient is the softmax, ties included", async () => {
    const [values, gradient] = await run([
      [1000, 1000, -Infinity],
      [-1000, -1000, -2000],
    ]);
    [1000 + Math.log(2), -1000 + Math.log(2)].forEach((value, i) => expect(values[i]).toBeCloseTo(value, 4));
    expect(gradient).toEqual([0.5, 0.5, 0, 0.5, 0.5, 0]);
  });

  test("is −∞ without a gradient for no entries, ∞ for ∞, NaN for NaN", async () => {
    const [values, gradient] = await run([
      [-Infinity, -Infinity],
      [Infinity, 3],
      [NaN, 3],
    ]);
    expect(values).toEqual([-Infinity, Infinity, NaN]);
    expect(gradient.slice(0, 2)).toEqual([0, 0]);
    expect(await run([[], []])).toEqual([[-Infinity, -Infinity], []]);
  });

  test("returns a scalar unchanged; keeps dimensions on request", async () => {
    const fn = (x: Tensor): readonly Tensor[] => [logSumExp(x), logSumExp(x, { keepDims: true })];
    const scalar = (await evaluate(fn, referenceBackend())(NdArray.from([-3], []))) as unknown as NdArray[];
    expect(scalar.map((array) => array.toNumbers())).toEqual([[-3], [-3]]);
    const [, kept] = (await evaluate(fn, referenceBackend())(NdArray.zeros("f32", [2, 3]))) as unknown as NdArray[];
    expect(kept!.shape).toEqual([1, 1]);
    expect(kept!.item()).toBeCloseTo(Math.log(6), 6);
  });

  test("rejects integers, and a number instead of options", async () => {
    const wrong = (fn: (x: Tensor) => Tensor, x: NdArray): Promise<unknown> => evaluate(fn, referenceBackend())(x);
    await expect(wrong((x) => logSumExp(x), NdArray.zeros("i32", [2]))).rejects.toThrow(
      /logSumExp: i32\[2\] is not supported, logSumExp takes f32/,
    );
    await expect(wrong((x) => logSumExp(x, 0 as never), NdArray.zeros("f32", [2]))).rejects.toThrow(
      /logSumExp\(x, \{ dims: 0 \}\)/,
    );
  });
});
