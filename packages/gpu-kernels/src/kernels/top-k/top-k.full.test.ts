import { NdArray } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { planNode } from "../../../test/run-node.ts";
import { checkSelection } from "../../../test/selections.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";

// Selections from millions of rows or numbers take seconds on a GPU, and much longer on a CPU.
describe.skipIf(!hasAdapter)("large selections on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test("of ten million, a thousandth and a hundredth", async () => {
    const block = normalArray([1_000_000], 7).data as Float32Array;
    const x = new NdArray(
      "f32",
      [10_000_000],
      Float32Array.from({ length: 10_000_000 }, (_, i) => block[i % block.length]! * (1 + (i % 97) * 1e-6)),
    );
    await checkSelection(backend, x, 10_000, true, "magnitude");
    await checkSelection(backend, x, 100_000, false, "magnitude");
  });

  test("more workgroups than one dimension of a grid has", async () => {
    const shape = [65_600, 129];
    expect(planNode("top-k", [{ dtype: "f32", shape }], { k: 1, sorted: false, by: "value" }).passes[0]!.groups).toBe(
      65_600,
    );
    const block = normalArray([100_003], 7).data as Float32Array;
    await checkSelection(
      backend,
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
