import { evaluate, maxPool2d, NdArray, sum, type Tensor, valueAndGrad } from "@skein/tensor-core";
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

  // Five channels: four in a vector and one over.
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
