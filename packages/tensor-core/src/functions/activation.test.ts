import { describe, expect, test } from "vitest";
import { vjp } from "../autodiff/vjp.ts";
import { ArgumentError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { elu, leakyRelu } from "./activation.ts";
import { onesLike } from "./elementwise.ts";

const run = async (
  fn: (x: Tensor) => Tensor,
  values: readonly number[],
): Promise<[values: number[], gradient: number[]]> => {
  const traced = (x: Tensor): readonly Tensor[] => {
    const { value, pullback } = vjp(fn, x);
    return [value, pullback(onesLike(value))];
  };
  const results = (await evaluate(traced, referenceBackend())(NdArray.from(values))) as unknown as NdArray[];
  return results.map((array) => array.toNumbers()) as [number[], number[]];
};

describe("leakyRelu", () => {
  test("has the slope at 0 and below, and NaN stays NaN", async () => {
    const [values, gradient] = await run((x) => leakyRelu(x, { slope: 0.25 }), [-Infinity, -4, 0, 4, NaN]);
    expect(values).toEqual([-Infinity, -1, 0, 4, NaN]);
    expect(gradient).toEqual([0.25, 0.25, 0.25, 1, 0.25]);
  });
});

describe("elu", () => {
  test("neither overflows above 0 nor loses its limit below; its gradient at 0 is alpha", async () => {
    const [values, gradient] = await run((x) => elu(x, { alpha: 2 }), [-Infinity, -200, 0, 1000]);
    expect(values).toEqual([-2, -2, 0, 1000]);
    expect(gradient[0]).toBe(0);
    expect(gradient.slice(2)).toEqual([2, 1]);
  });

  test("keeps the digits of small values", async () => {
    const small = [-1e-9, -1e-6, -1e-3];
    const [values] = await run((x) => elu(x), small);
    values.forEach((value, i) => expect(value / Math.expm1(Math.fround(small[i]!))).toBeCloseTo(1, 6));
  });
});

test.each([
  ["leakyRelu", (x: Tensor) => leakyRelu(x, 0.1 as never), /leakyRelu\(x, \{ slope: 0\.1 \}\)/],
  [
    "leakyRelu with NaN",
    (x: Tensor) => leakyRelu(x, { slope: NaN }),
    /leakyRelu: slope is .*NaN, but it must be a finite number; use for example 0\.01/,
  ],
  ["elu", (x: Tensor) => elu(x, 2 as never), /elu\(x, \{ alpha: 2 \}\)/],
] as const)("%s rejects a number that is none, or stands in the place of its options", async (_, fn, message) => {
  await expect(run(fn, [1])).rejects.toThrow(ArgumentError);
  await expect(run(fn, [1])).rejects.toThrow(message);
});
