import { evaluate, maxPool2d, NdArray, sum, type Tensor, valueAndGrad, vjp } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSharedMemory } from "../arena.ts";
import { createCpuBackend } from "../cpu-backend.ts";
import type { WasmBuild } from "../wasm-build.ts";

const builds: readonly WasmBuild[] = ["relaxed", "simd", "scalar"];

describe.each(builds)("max pooling of the %s build", async (build) => {
  const backend = await createCpuBackend({ build, memory: createSharedMemory(64 * 2 ** 20) });
  const valueAndGradient = evaluate((x: Tensor) => {
    const y = maxPool2d(x, { window: 2 });
    const [, gradient] = valueAndGrad((own: Tensor) => sum(maxPool2d(own, { window: 2 })))(x);
    return { y, gradient };
  }, backend);

  // With five channels, four channels are processed as a vector and one channel is processed alone.
  test.each([
    ["a NaN wins, wherever it stands", [1, NaN, 3, 2], NaN, [0, 1, 0, 0]],
    ["the first NaN wins", [NaN, 5, NaN, 2], NaN, [1, 0, 0, 0]],
    ["the first of equal values wins", [2, 7, 7, 7], 7, [0, 1, 0, 0]],
    ["minus infinity is a value", [-Infinity, -Infinity, -Infinity, -Infinity], -Infinity, [1, 0, 0, 0]],
  ] as const)("%s", async (_, window, value, gradient) => {
    const spread = window.flatMap((pixel) => [pixel, pixel, pixel, pixel, pixel]);
    const result = await valueAndGradient(NdArray.from(spread, [1, 2, 2, 5]));
    expect(result.y.toNumbers()).toEqual([value, value, value, value, value]);
    expect(result.gradient.toNumbers()).toEqual(gradient.flatMap((share) => [share, share, share, share, share]));
  });
});

const pooled = async (build: WasmBuild) => {
  const backend = await createCpuBackend({ build, memory: createSharedMemory(64 * 2 ** 20) });
  return ([2, 3] as const).map((window) =>
    evaluate(
      (x: Tensor, g: Tensor) => vjp((own: Tensor) => maxPool2d(own, { window, stride: 2 }), x).pullback(g),
      backend,
    ),
  );
};

describe("the gradient of max pooling with windows of 2 × 2, and with overlapping windows of 3 × 3,", async () => {
  const [scalar, simd, relaxed] = [await pooled("scalar"), await pooled("simd"), await pooled("relaxed")];
  // Few distinct values, so that there are ties, and NaN at any position.
  const values = fc.constantFrom(-1, -0, 0, 1, NaN, -Infinity, Infinity);
  const size = fc.integer({ min: 3, max: 6 });
  const sizes = fc.tuple(fc.integer({ min: 1, max: 2 }), size, size, fc.constantFrom(3, 4, 9));
  const cases = fc.tuple(sizes, fc.constantFrom(0, 1)).chain(([[batch, height, width, channels], way]) => {
    const along = (pixels: number): number => Math.floor((pixels - way) / 2);
    const x = [batch, height, width, channels] as const;
    const g = [batch, along(height), along(width), channels] as const;
    const array = (shape: readonly number[], of: fc.Arbitrary<number>): fc.Arbitrary<NdArray> => {
      const length = shape.reduce((a, b) => a * b, 1);
      return fc.array(of, { minLength: length, maxLength: length }).map((list) => NdArray.from(list, [...shape]));
    };
    return fc.tuple(fc.constant(way), array(x, values), array(g, fc.integer({ min: -3, max: 3 })));
  });

  test("goes to the same pixel in vectors and in scalars", async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ([way, x, g]) => {
        const expected = (await scalar[way]!(x, g)).toNumbers();
        expect((await simd[way]!(x, g)).toNumbers()).toEqual(expected);
        expect((await relaxed[way]!(x, g)).toNumbers()).toEqual(expected);
      }),
      { numRuns: 100 },
    );
  });
});
