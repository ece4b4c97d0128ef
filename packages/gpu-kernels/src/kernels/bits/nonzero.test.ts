import { NdArray } from "@skein/tensor-core";
import { seeded } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { KernelPlan } from "../../kernel.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import { nonzeroPasses, nonzeroTile } from "./nonzero.ts";

const planOf = (count: number, capacity: number): KernelPlan => {
  const blocks = new ScratchBlocks();
  const passes = nonzeroPasses(count, capacity, blocks);
  return { scratch: blocks.bytes, passes };
};

test("nonzero takes two passes within a tile, and counts tiles otherwise", () => {
  expect(planOf(nonzeroTile, 10).passes.map(({ label }) => label)).toEqual(["nonzero, one tile", "nonzero, fill"]);
  expect(planOf(nonzeroTile + 1, 10).passes.map(({ groups }) => groups)).toEqual([2, 1, 2, 1]);
  const { passes, scratch } = planOf(4097 * nonzeroTile, 10);
  expect(passes.map(({ groups }) => groups)).toEqual([4097, 2, 1, 2, 4097, 1]);
  const used = passes.flatMap(({ bindings }) =>
    bindings.flatMap(({ source }) => ("scratch" in source ? [source.scratch] : [])),
  );
  expect([...new Set(used)].sort()).toEqual([0, 1]);
  expect(scratch).toEqual([4 * 4097, 8]);
});

describe.skipIf(!hasAdapter)("nonzero on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each([
    [1, 1, 0.5],
    [15, 20, 0.5],
    [17, 4, 0.9],
    [nonzeroTile, nonzeroTile, 0.5],
    [nonzeroTile + 1, 300, 0.01],
    [5 * nonzeroTile - 7, 3 * nonzeroTile, 0.9],
  ])("of %i bools with a capacity of %i", async (count, capacity, share) => {
    const random = seeded(count);
    const bools = Uint8Array.from({ length: count }, () => (random() < share ? 1 : 0));
    const [indices, found] = await runPlan(
      backend.device,
      planOf(count, capacity),
      [new NdArray("bool", [count], bools)],
      [
        { dtype: "i32", shape: [capacity] },
        { dtype: "i32", shape: [] },
      ],
    );
    const expected = new Int32Array(capacity);
    let held = 0;
    bools.forEach((bit, i) => {
      if (bit === 1 && held < capacity) expected[held++] = i;
    });
    expect(new Int32Array(found!)).toEqual(Int32Array.of(held));
    expect(new Int32Array(indices!)).toEqual(expected);
  });
});
