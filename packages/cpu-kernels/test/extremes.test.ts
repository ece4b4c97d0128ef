import { createCpuBackend, createSharedMemory, type WasmBuild } from "@skein/cpu-kernels";
import {
  type Backend,
  bitcast,
  evaluate,
  maximum,
  minimum,
  NdArray,
  reduceMax,
  reduceMin,
  type Tensor,
} from "@skein/tensor-core";
import { describe, expect, test } from "vitest";

const builds: readonly WasmBuild[] = ["relaxed", "simd", "scalar"];

const signsOf = async (backend: Backend, fn: (x: Tensor) => Tensor, values: readonly number[]): Promise<number[]> =>
  ((await evaluate((x: Tensor) => bitcast(fn(x), "u32"), backend)(NdArray.from(values))) as NdArray)
    .toNumbers()
    .map((bits) => bits >>> 31);

// Fast instructions treat −0 and 0 as equal, as comparisons do, so they must not be used if two zeros may be compared.
describe.each(builds)("zeros in the %s build", (build) => {
  const open = (): Promise<Backend> => createCpuBackend({ build, memory: createSharedMemory(64 * 2 ** 20) });

  test("are ordered in reductions: -0 before 0, at any position", async () => {
    const backend = await open();
    for (const at of [0, 3, 17, 63, 66]) {
      const [zeros, negatives] = [0, -0].map((rest) => Array.from({ length: 67 }, (_, i) => (i === at ? -rest : rest)));
      expect(await signsOf(backend, (x) => reduceMax(x), zeros!)).toEqual([0]);
      expect(await signsOf(backend, (x) => reduceMax(x), negatives!)).toEqual([0]);
      expect(await signsOf(backend, (x) => reduceMin(x), zeros!)).toEqual([1]);
      expect(await signsOf(backend, (x) => reduceMin(x), negatives!)).toEqual([1]);
    }
  });

  test("are ordered against constants", async () => {
    const backend = await open();
    const values = [0, -0, 0, -0, 0, -0];
    expect(await signsOf(backend, (x) => maximum(x, 0), values)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(await signsOf(backend, (x) => minimum(x, 0), values)).toEqual([0, 1, 0, 1, 0, 1]);
    expect(await signsOf(backend, (x) => minimum(x, -0), values)).toEqual([1, 1, 1, 1, 1, 1]);
  });
});
