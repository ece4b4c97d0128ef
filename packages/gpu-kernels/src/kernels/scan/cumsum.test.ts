import { NdArray, type Shape } from "@skein/tensor-core";
import { normalArray, uniformArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { checkNode, planNode, runNode } from "../../../test/run-node.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { DeviceFacts } from "../../kernel.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { cumsumPlan } from "./cumsum.ts";
import { cumsumNaive } from "./naive.ts";

const software: DeviceFacts = { ...minimalDevice, software: true };

const shapes: readonly (readonly [shape: Shape, dim: number])[] = [
  [[1], 0],
  [[4_097], 0],
  [[500, 3], 1],
  [[70_000, 4], 1],
  [[3, 1_023], 1],
  [[2, 9_001], 1],
  [[1_300, 8], 0],
  [[40_003, 3], 0],
  [[3, 700, 7], 1],
];
const furtherShapes: typeof shapes = [
  [[1_000_002], 0],
  [[300, 1_000], 1],
  [[2, 600, 260], 1],
];

describe("plans of running sums", () => {
  test("need one pass for rows of a tile and five for ten million", () => {
    const count = (shape: Shape, dim: number): number =>
      planNode("cumsum", [{ dtype: "f32", shape }], { dim, reverse: false }).passes.length;
    expect(count([500, 4_096], 1)).toBe(1);
    expect(count([1_000_000], 0)).toBe(3);
    expect(count([10_000_000], 0)).toBe(5);
    expect(count([100_000_000], 0)).toBe(5);
    expect(count([32, 100_000], 0)).toBe(1);
    expect(count([1_000_000, 2], 0)).toBeLessThanOrEqual(9);
  });
});

describe.skipIf(!hasAdapter)("running sums on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const checkShape = async (shape: Shape, dim: number): Promise<void> => {
    const tolerance = { absolute: 0, relative: 1e-6 };
    await checkNode(backend, "cumsum", [normalArray(shape, 4, "i32")], { dim, reverse: true }, { facts: software });
    for (const reverse of [false, true])
      await checkNode(backend, "cumsum", [uniformArray(shape, 0.5, 1.5, 4)], { dim, reverse }, { tolerance });
  };
  test.each(shapes)("every shape, both directions: %j along %i", checkShape);
  test.each(furtherShapes)("every shape, both directions: %j along %i", { tags: "full" }, checkShape);

  test("two runs give the same bits", async () => {
    await runNode(backend, "cumsum", [normalArray([100_001], 4)], { dim: 0, reverse: false }, { runs: 2 });
    await runNode(backend, "cumsum", [normalArray([4_000, 6], 4)], { dim: 0, reverse: true }, { runs: 2 });
  });

  test("integers wrap", async () => {
    const [y] = await runNode(backend, "cumsum", [NdArray.from([2 ** 31 - 1, 1, 5], [3], "i32")], {
      dim: 0,
      reverse: false,
    });
    expect([...y!.toNumbers()]).toEqual([2 ** 31 - 1, -(2 ** 31), -(2 ** 31) + 5]);
  });

  test("memory after the end of a row does not leak into the row", async () => {
    const x = normalArray([4, 1_001], 2);
    (x.data as Float32Array)[1_001] = Infinity;
    await checkNode(
      backend,
      "cumsum",
      [x],
      { dim: 1, reverse: true },
      { tolerance: { absolute: 1e-4, relative: 1e-5 } },
    );
  });

  test("more workgroups than one dimension of a grid has", async () => {
    const shape = [1, 2 ** 24 + 1];
    expect(planNode("cumsum", [{ dtype: "i32", shape }], { dim: 0, reverse: false }).passes[0]!.groups).toBe(65_537);
    const x = new NdArray(
      "i32",
      shape,
      Int32Array.from({ length: 2 ** 24 + 1 }, (_, i) => i),
    );
    const [y] = await runNode(backend, "cumsum", [x], { dim: 0, reverse: true });
    expect((y!.data as Int32Array).findIndex((value, i) => value !== i)).toBe(-1);
  });

  test.each([false, true])("the naive variant has the same bits, from the end %s", async (reverse) => {
    const shape = [2, 9_001];
    const x = normalArray(shape, 4, "i32"); // integers are summed as words
    const [clever, naive] = await Promise.all(
      [
        cumsumPlan("u32", { outer: 2, size: 9_001, inner: 1 }, reverse, minimalDevice),
        cumsumNaive({ type: "u32", rows: 2, size: 9_001, reverse }),
      ].map((plan) => runPlan(backend.device, plan, [x], [{ dtype: "i32", shape }])),
    );
    expect(new Int32Array(clever![0]!)).toEqual(new Int32Array(naive![0]!));
  });
});
