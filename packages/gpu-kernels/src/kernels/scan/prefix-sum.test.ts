import { NdArray } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { prefixSumBlock, prefixSumPasses } from "./prefix-sum.ts";

describe("prefix sum", () => {
  test("takes one pass within a block, three within a block of blocks, otherwise five", () => {
    const passes = (count: number): number[] =>
      prefixSumPasses({ input: 0 }, { output: 0 }, count).passes.map(({ groups }) => groups);
    expect(passes(prefixSumBlock)).toEqual([1]);
    expect(passes(prefixSumBlock + 1)).toEqual([2, 1, 2]);
    expect(passes(2 ** 31)).toEqual([524_288, 128, 1, 128, 524_288]);
  });

  test("numbers its scratch blocks from the given index", () => {
    const { passes, scratch } = prefixSumPasses({ input: 0 }, { output: 0 }, 2 ** 31, 5);
    const used = passes.flatMap(({ bindings }) =>
      bindings.flatMap(({ source }) => ("scratch" in source ? [source.scratch] : [])),
    );
    expect([...new Set(used)].sort()).toEqual([5, 6]);
    expect(scratch).toEqual([4 * 524_288, 4 * 128]);
  });
});

describe.skipIf(!hasAdapter)("prefix sum on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each([1, 3, 257, 4096, 4097, 100_003, ...examples([], [2 ** 24 + 4099])])(
    "of %i numbers is exact, modulo 2³²",
    async (count) => {
      const numbers = Uint32Array.from({ length: count }, (_, i) => Math.imul(i + 1, 0x9e3779b1));
      const x = new NdArray("u32", [count], numbers);
      const [bytes] = await runPlan(backend.device, prefixSumPasses({ input: 0 }, { output: 0 }, count), [x], [x]);
      const actual = new Uint32Array(bytes!);
      let sum = 0;
      const wrong = numbers.findIndex((number, i) => {
        const before = sum;
        sum = (sum + number) >>> 0;
        return actual[i] !== before;
      });
      expect(wrong).toBe(-1);
    },
  );
});
