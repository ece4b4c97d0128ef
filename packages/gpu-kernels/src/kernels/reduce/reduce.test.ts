import { type DType, NdArray, type Shape } from "@skein/tensor-core";
import { reductionSteps } from "@skein/tensor-core/backend";
import { normalArray, uniformArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { checkNode, planNode, runNode } from "../../../test/run-node.ts";
import type { DeviceFacts } from "../../kernel.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";

const software: DeviceFacts = { ...minimalDevice, software: true };

const exact = { absolute: 0, relative: 0 };

/**
 * Shapes that cover all code paths: short rows, rows for one workgroup and for several workgroups, starts between
 * registers, narrow, wide and split columns, chains of reductions.
 */
const shapes: readonly (readonly [shape: Shape, dims: readonly number[]])[] = [
  [[1], [0]],
  [[5, 1023], [1]],
  [[3, 40_001], [1]],
  [[40_003, 3], [0]],
  [[5_000, 67], [0]],
  [
    [4, 5, 700, 6],
    [0, 2],
  ],
  [[0, 7], [0]],
  [[7, 0], [1]],
];
const furtherShapes: typeof shapes = [
  [[70_000, 5], [1]],
  [[1_000_003], [0]],
  [[3_000, 1, 260], [0]],
  [[2, 37, 1_028], [1]],
];

const values = (shape: Shape, dtype: DType): NdArray => {
  const plain = normalArray(shape, 3, dtype);
  if (dtype !== "f32") return plain;
  return NdArray.from(
    plain.toNumbers().map((value, i) => (i % 97 === 13 ? 20 * value : value)),
    shape,
  );
};

describe("plans of reductions", () => {
  test("merge adjacent dimensions and fold the innermost run first", () => {
    expect(reductionSteps([2, 3, 4, 5], [2, 3])).toEqual([{ outer: 6, size: 20, inner: 1 }]);
    expect(reductionSteps([2, 3, 4, 5], [0, 2])).toEqual([
      { outer: 6, size: 4, inner: 5 },
      { outer: 1, size: 2, inner: 15 },
    ]);
    expect(reductionSteps([1, 1], [0])).toEqual([{ outer: 1, size: 1, inner: 1 }]);
  });

  test("spread one long row over the device, and keep many short rows within workgroups", () => {
    const labels = (shape: Shape, dims: readonly number[], facts = minimalDevice): string[] =>
      planNode("sum", [{ dtype: "f32", shape }], { dims: [...dims] }, facts).passes.map(({ label }) => label);
    expect(labels([10_000_000], [0])).toEqual(["sum rows, 512 workgroups each", "sum columns, 1 by 16"]);
    expect(labels([262_144, 64], [1])).toEqual(["sum rows, 2 invocations each"]);
    expect(labels([4096, 4096], [1])).toEqual(["sum rows, 128 invocations each"]);
    expect(labels([4096, 4096], [0]).length).toBe(2);
    expect(labels([10_000_000], [0], software)[0]).toMatch(/3[0-9] workgroups/);
  });

  test("fold operands of 10¹⁰ elements in bounded chains", () => {
    for (const { groups } of planNode("sum", [{ dtype: "f32", shape: [4, 2 ** 29] }], { dims: [1] }).passes)
      expect(groups).toBeLessThan(2 ** 32);
  });
});

describe.skipIf(!hasAdapter)("reductions on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const checkShape = async (shape: Shape, dims: readonly number[]): Promise<void> => {
    const tolerance = { absolute: 2e-3, relative: 1e-6 };
    const params = { dims: [...dims] };
    await checkNode(backend, "sum", [values(shape, "f32")], params, { tolerance });
    await checkNode(backend, "sum", [values(shape, "f32")], params, { facts: software, tolerance });
    await checkNode(backend, "sum", [values(shape, "i32")], params);
    await checkNode(backend, "reduce-max", [values(shape, "f32")], params, { tolerance: exact });
    await checkNode(backend, "reduce-min", [values(shape, "u8")], params);
    if (dims.length === 1 && shape[dims[0]!]! > 0) {
      await checkNode(backend, "argmax", [values(shape, "bool")], { dim: dims[0]! });
      await checkNode(backend, "argmin", [values(shape, "f32")], { dim: dims[0]! });
    }
  };
  test.each(shapes)("of every shape: %j over %j", checkShape);
  test.each(furtherShapes)("of every shape: %j over %j", { tags: "full" }, checkShape);

  test("two runs give the same bits", async () => {
    for (const [shape, dims] of [
      [[1_000_003], [0]],
      [[40_003, 3], [0]],
    ])
      await runNode(backend, "sum", [values(shape!, "f32")], { dims: dims! }, { runs: 2 });
  });

  test("a sum of one sign keeps nearly all digits", async () => {
    for (const shape of [
      [3, 1_000_001],
      [500_000, 4],
      [300_000, 7],
    ] as const) {
      const x = uniformArray(shape, 1000, 1001, 9);
      await checkNode(
        backend,
        "sum",
        [x],
        { dims: shape[0] === 3 ? [1] : [0] },
        { tolerance: { absolute: 0, relative: 2.5e-7 } },
      );
    }
  });

  test("NaN, infinities and signed zeros at any position", async () => {
    const odd = [NaN, -Infinity, -0, 1e-40];
    for (const size of [7, 40_000]) {
      for (const [i, value] of odd.entries()) {
        const x = normalArray([2, size], i);
        (x.data as Float32Array)[size + ((i * 7919) % size)] = value;
        (x.data as Float32Array)[2 * size - 1] = value;
        for (const op of ["reduce-max", "reduce-min"])
          await checkNode(backend, op, [x], { dims: [1] }, { tolerance: exact });
        for (const op of ["argmax", "argmin"]) await checkNode(backend, op, [x], { dim: 1 });
      }
    }
  });

  test("the first of equal elements wins across workgroups", async () => {
    const x = NdArray.zeros("f32", [300_000]);
    for (const op of ["argmax", "argmin"]) await checkNode(backend, op, [x], { dim: 0 });
    (x.data as Float32Array).fill(NaN, 170_001);
    for (const op of ["argmax", "argmin"]) await checkNode(backend, op, [x], { dim: 0 });
  });

  test("all of an empty reduction returns the dtype's extremes", async () => {
    const [least] = await runNode(backend, "reduce-max", [NdArray.zeros("f32", [0, 3])], { dims: [0] });
    expect([...least!.toNumbers()]).toEqual([-Infinity, -Infinity, -Infinity]);
  });

  test("more workgroups than one dimension of a grid has", async () => {
    const columns = [65_600, 2, 2];
    expect(planNode("sum", [{ dtype: "i32", shape: columns }], { dims: [1] }).passes[0]!.groups).toBe(65_600);
    await checkNode(backend, "sum", [normalArray(columns, 2, "i32")], { dims: [1] });
  });
});
