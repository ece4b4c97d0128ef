import { NdArray, type Shape } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { planNode } from "../../../test/run-node.ts";
import { checkSelection } from "../../../test/selections.ts";
import type { DeviceFacts } from "../../kernel.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { topKNaive } from "./naive.ts";
import { topKPlan } from "./plan.ts";

const software: DeviceFacts = { ...minimalDevice, software: true };

const labels = (shape: Shape, k: number, sorted: boolean, facts = minimalDevice): string[] =>
  planNode("top-k", [{ dtype: "f32", shape }], { k, sorted, by: "value" }, facts).passes.map(({ label }) => label);

describe("plans of selections", () => {
  test("take one pass for short rows, and for rows that one workgroup sorts", () => {
    expect(labels([8192, 8], 2, true)).toEqual(["top-k by rank, 8 invocations each"]);
    expect(labels([4096, 64], 2, false)).toEqual(["top-k by rank, 64 invocations each"]);
    expect(labels([30, 1000], 7, true)).toEqual(["top-k, sort tiles of 1024"]);
    expect(labels([3, 4000], 7, false)).toEqual(["top-k, a workgroup per row"]);
    expect(labels([512, 32_000], 50, true)).toEqual(["top-k, a workgroup per row", "top-k, sort tiles of 64"]);
    expect(labels([9, 32_000], 50, false, software)).toEqual(["top-k, a workgroup per row"]);
  });

  test("read long rows a bounded number of times, for any k", () => {
    expect(labels([10_000_000], 10_000, false).length).toBe(10);
    expect(labels([10_000_000], 100_000, false).length).toBe(10);
    expect(labels([10_000_000], 100_000, true).length).toBe(18);
    expect(labels([10_000_000], 10_000_000, false)).toEqual(["top-k, everything"]);
  });

  test("bind nothing larger than an output or the operand", () => {
    const rows = 3;
    for (const k of [1, 2000, 200_000])
      for (const bytes of planNode(
        "top-k",
        [{ dtype: "f32", shape: [rows, 300_000] }],
        { k, sorted: true, by: "value" },
        minimalDevice,
      ).scratch!)
        expect(bytes).toBeLessThanOrEqual(4 * rows * Math.max(k, 5120));
  });
});

describe.skipIf(!hasAdapter)("selections on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  /** Returns values of which every hundredth is twenty times as large, and all kinds of special float values. */
  const wild = (shape: Shape): NdArray => {
    const x = normalArray(shape, 5);
    const data = x.data as Float32Array;
    const odd = [NaN, Infinity, -Infinity, -0, 0, 1e-40, -1e-40, -3.4e38];
    for (let i = 0; i < data.length; i++) {
      if (i % 100 === 7) data[i]! *= 20;
      if (i % 61 === 11) data[i] = odd[((i / 61) % 8) | 0]!;
    }
    return x;
  };

  test.each([
    [[77, 3], 1],
    [[40, 255], 9],
    [[5, 256], 256],
    [[3, 1001], 100],
    [[2, 4099], 1500],
    [[3, 9001], 1025],
    [[1, 30_002], 2500],
    [[2, 20_000], 7],
    [[2, 3000], 3000],
  ] as const)("of %j the largest %i", async (shape, k) => {
    const x = wild(shape);
    await checkSelection(backend, x, k, true, "value");
    await checkSelection(backend, x, k, false, "magnitude");
    await checkSelection(backend, x, k, true, "magnitude", { facts: software });
  });

  test("of equal elements, the first positions", async () => {
    for (const [size, k] of [
      [200, 77],
      [3000, 1500],
      [50_001, 20_000],
    ] as const) {
      if (size < 10_000)
        await checkSelection(backend, new NdArray("f32", [size], new Float32Array(size)), k, true, "value");
      const few = Float32Array.from({ length: size }, (_, i) => ((i * 7919) % 3) - 1);
      await checkSelection(backend, new NdArray("f32", [size], few), k, false, "magnitude");
      // The k-th element is one of several zeros, and ones follow after the omitted zeros.
      await checkSelection(backend, new NdArray("f32", [size], few), k, false, "value");
      await checkSelection(backend, new NdArray("f32", [size], new Float32Array(size).fill(NaN, 5)), k, false, "value");
    }
  });

  test("two runs give the same bits", async () => {
    await checkSelection(backend, wild([100_001]), 4000, true, "value", { runs: 2 });
  });

  test("the naive variant has the same bits in the same order", async () => {
    const [rows, size, k] = [2, 20_000, 7]; // same sizes as above, so that no shader is compiled again
    const selection = { rows, size, k, by: "value" } as const;
    const plan = topKPlan(selection, true, minimalDevice);
    expect(plan.passes.map(({ label }) => label)).toContain("top-k, count digit 1");
    const ties = Float32Array.from({ length: rows * size }, (_, i) => ((i * 7919) % 13) - 6);
    for (const x of [wild([rows, size]), new NdArray("f32", [rows, size], ties)]) {
      const outputs = [{ dtype: "f32", shape: [rows, k] } as const, { dtype: "i32", shape: [rows, k] } as const];
      const [clever, naive] = [
        await runPlan(backend.device, plan, [x], outputs),
        await runPlan(backend.device, topKNaive(selection), [x], outputs),
      ];
      for (const i of [0, 1]) expect(new Uint32Array(clever[i]!)).toEqual(new Uint32Array(naive[i]!));
    }
  });
});
