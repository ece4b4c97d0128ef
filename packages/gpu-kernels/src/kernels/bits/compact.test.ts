import { NdArray } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import { compactPasses } from "./compact.ts";
import { nonzeroTile } from "./nonzero.ts";

describe.skipIf(!hasAdapter)("compact", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  // The operand is followed by NaNs, which would reach any bound.
  test.each([
    [1, 1],
    [17, 4],
    [nonzeroTile + 1, 300],
    [3 * nonzeroTile - 7, 3 * nonzeroTile],
  ])("selects from %i values with a capacity of %i", async (count, capacity) => {
    const blocks = new ScratchBlocks();
    const passes = compactPasses(count, capacity, blocks, backend.device.facts);
    const x = normalArray([count], count).data as Float32Array;
    const outputs = await runPlan(
      backend.device,
      { scratch: blocks.bytes, passes },
      [new NdArray("f32", [count], x), NdArray.scalar(1)],
      [
        { dtype: "f32", shape: [capacity] },
        { dtype: "i32", shape: [capacity] },
        { dtype: "i32", shape: [] },
        { dtype: "f32", shape: [] },
      ],
    );
    const reaching = [...x.keys()].filter((i) => Math.abs(x[i]!) >= 1);
    const indices = new Int32Array(capacity);
    indices.set(reaching.slice(0, capacity));
    expect(new Int32Array(outputs[2]!)[0]).toBe(reaching.length);
    expect(new Int32Array(outputs[1]!)).toEqual(indices);
    expect(new Float32Array(outputs[0]!)).toEqual(
      Float32Array.from(indices, (index, i) => (i < reaching.length ? x[index]! : 0)),
    );
    expect(new Float32Array(outputs[3]!)[0]).toBe(Math.max(...x.map(Math.abs)));
  });
});
