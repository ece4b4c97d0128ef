import { NdArray, type Shape } from "@skein/tensor-core";
import { normal } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { leastDevice } from "../../least-device.ts";
import { planNode, runNode } from "../../../test/run-node.ts";
import type { DeviceFacts } from "../../kernel.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";

const software: DeviceFacts = { ...leastDevice, software: true };

type By = "value" | "magnitude";

/** Positions of the k greatest of a row, from one sort of its numbers: fast enough for ten million. */
const bestOf = (row: Float32Array, k: number, sorted: boolean, by: By): number[] => {
  const ranks = row.map((value) => (by === "magnitude" ? Math.abs(value) : value) + 0); // -0 becomes 0
  // Typed arrays sort NaN to the end.
  const threshold = ranks.slice().sort()[row.length - k]!;
  const above: number[] = [];
  const equal: number[] = [];
  for (let i = 0; i < ranks.length; i++) {
    if (Object.is(ranks[i], threshold)) equal.push(i);
    else if (ranks[i]! > threshold || Number.isNaN(ranks[i])) above.push(i);
  }
  const best = [...above, ...equal.slice(0, k - above.length)];
  const up = (i: number): number => (Number.isNaN(ranks[i]!) ? Infinity : ranks[i]!);
  if (!sorted) return best.sort((a, b) => a - b);
  return best.sort(
    (a, b) => Number(Number.isNaN(ranks[b]!)) - Number(Number.isNaN(ranks[a]!)) || (up(a) === up(b) ? a - b : up(b) - up(a)),
  );
};

const labels = (shape: Shape, k: number, sorted: boolean, facts = leastDevice): string[] =>
  planNode("top-k", [{ dtype: "f32", shape }], { k, sorted, by: "value" }, facts).passes.map(({ label }) => label);

describe("plans of selections", () => {
  test("are one pass for short rows, and for rows that one workgroup sorts", () => {
    expect(labels([8192, 8], 2, true)).toEqual(["top-k by rank, 8 invocations each"]);
    expect(labels([4096, 64], 2, false)).toEqual(["top-k by rank, 64 invocations each"]);
    expect(labels([30, 1000], 7, true)).toEqual(["top-k, sort tiles of 1024"]);
    expect(labels([3, 4000], 7, false)).toEqual(["top-k, a workgroup per row"]);
    expect(labels([512, 32_000], 50, true)).toEqual(["top-k, a workgroup per row", "top-k, sort tiles of 64"]);
    expect(labels([9, 32_000], 50, false, software)).toEqual(["top-k, a workgroup per row"]);
  });

  test("read long rows a bounded number of times, whatever k", () => {
    expect(labels([10_000_000], 10_000, false).length).toBe(10);
    expect(labels([10_000_000], 100_000, false).length).toBe(10);
    expect(labels([10_000_000], 100_000, true).length).toBe(18);
    expect(labels([10_000_000], 10_000_000, false)).toEqual(["top-k, everything"]);
  });

  test("bind nothing larger than an output or the operand", () => {
    const rows = 3;
    for (const k of [1, 2000, 200_000])
      for (const bytes of planNode("top-k", [{ dtype: "f32", shape: [rows, 300_000] }], { k, sorted: true, by: "value" }, leastDevice)
        .scratch!)
        expect(bytes).toBeLessThanOrEqual(4 * rows * Math.max(k, 5120));
  });
});

describe.skipIf(!hasAdapter)("selections on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const check = async (
    x: NdArray,
    k: number,
    sorted: boolean,
    by: By,
    options: { facts?: DeviceFacts; runs?: 1 | 2 } = {},
  ): Promise<void> => {
    const [values, indices] = await runNode(backend, "top-k", [x], { k, sorted, by }, options);
    const size = x.shape.at(-1)!;
    const data = x.data as Float32Array;
    for (let row = 0; row < data.length / size; row++) {
      const best = bestOf(data.subarray(row * size, (row + 1) * size), k, sorted, by);
      const wrong = best.findIndex(
        (place, i) => indices!.data[row * k + i] !== place || !Object.is(values!.data[row * k + i], data[row * size + place]),
      );
      if (wrong >= 0)
        throw new Error(
          `row ${row} of [${x.shape.join()}], k = ${k}: rank ${wrong} is ${values!.data[row * k + wrong]} at ${indices!.data[row * k + wrong]}, not ${data[row * size + best[wrong]!]} at ${best[wrong]}`,
        );
    }
  };

  /** Every hundredth twenty times as large, and some of everything that floats can be. */
  const wild = (shape: Shape): NdArray => {
    const x = normal(shape, 5);
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
  ] as const)("of %j the greatest %i", async (shape, k) => {
    const x = wild(shape);
    await check(x, k, true, "value");
    await check(x, k, false, "magnitude");
    await check(x, k, true, "magnitude", { facts: software });
  });

  test("of equals, those in front", async () => {
    for (const [size, k] of [
      [200, 77],
      [3000, 1500],
      [50_001, 20_000],
    ] as const) {
      if (size < 10_000) await check(new NdArray("f32", [size], new Float32Array(size)), k, true, "value");
      const few = Float32Array.from({ length: size }, (_, i) => ((i * 7919) % 3) - 1);
      await check(new NdArray("f32", [size], few), k, false, "magnitude");
      // The cut goes through the zeros, and ones follow behind those that are left out.
      await check(new NdArray("f32", [size], few), k, false, "value");
      await check(new NdArray("f32", [size], new Float32Array(size).fill(NaN, 5)), k, false, "value");
    }
  });

  test("two runs give the same bits", async () => {
    await check(wild([100_001]), 4000, true, "value", { runs: 2 });
  });

  test("of ten million, a thousandth and a hundredth", async () => {
    const block = normal([1_000_000], 7).data as Float32Array;
    const x = new NdArray(
      "f32",
      [10_000_000],
      Float32Array.from({ length: 10_000_000 }, (_, i) => block[i % block.length]! * (1 + (i % 97) * 1e-6)),
    );
    await check(x, 10_000, true, "magnitude");
    await check(x, 100_000, false, "magnitude");
  });

  test("more workgroups than one dimension of a grid takes", async () => {
    const shape = [65_600, 129];
    expect(planNode("top-k", [{ dtype: "f32", shape }], { k: 1, sorted: false, by: "value" }).passes[0]!.groups).toBe(65_600);
    const block = normal([100_003], 7).data as Float32Array;
    await check(
      new NdArray(
        "f32",
        shape,
        Float32Array.from({ length: 65_600 * 129 }, (_, i) => block[i % block.length]!),
      ),
      1,
      false,
      "value",
    );
  });
});
