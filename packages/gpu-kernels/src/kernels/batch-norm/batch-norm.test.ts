import { NdArray, type Shape } from "@skein/tensor-core";
import { normalArray, uniformArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { checkNode, planNode, runNode } from "../../../test/run-node.ts";
import type { DeviceFacts } from "../../kernel.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";

const software: DeviceFacts = { ...minimalDevice, software: true };

const shapes: readonly Shape[] = [
  [1, 1],
  [5, 1],
  [40_001, 1],
  [3, 7],
  [20_000, 3],
  [2, 5, 5, 16],
  [9_001, 64],
  [700, 260],
  [50, 1_031],
];

/** Returns values far from zero, every seventh of which is twenty times as large. */
const offCentre = (shape: Shape, centre: number): NdArray =>
  NdArray.from(
    normalArray(shape, 1)
      .toNumbers()
      .map((value, i) => centre + (i % 7 === 3 ? 20 * value : value)),
    shape,
  );

describe("plans of batch normalization", () => {
  test("use at most eight bindings", () => {
    for (const op of ["batch-norm", "batch-norm-backward"]) {
      const vector = { dtype: "f32", shape: [64] } as const;
      const x = { dtype: "f32", shape: [200_704, 64] } as const;
      const inputs = op === "batch-norm" ? [x, vector, vector] : [x, vector, vector, vector, x];
      expect(planNode(op, inputs, { epsilon: 1e-5 }).passes.length).toBe(3);
    }
  });
});

describe.skipIf(!hasAdapter)("batch normalization on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each(shapes.map((shape) => [shape]))("forward and backward, every shape: %j", async (shape) => {
    for (const facts of [minimalDevice, software]) {
      const columns = shape.slice(-1);
      const [gamma, beta] = [uniformArray(columns, 0.5, 1.5, 7), normalArray(columns, 8)];
      const x = offCentre(shape, 3);
      await checkNode(
        backend,
        "batch-norm",
        [x, gamma, beta],
        { epsilon: 1e-3 },
        { facts, tolerance: { absolute: 3e-5, relative: 3e-5 } },
      );
      const rows = x.data.length / columns[0]!;
      await checkNode(
        backend,
        "batch-norm-backward",
        [normalArray(shape, 2), gamma, normalArray(columns, 9), uniformArray(columns, 0.5, 2), normalArray(shape, 3)],
        { epsilon: 1e-3 },
        { facts, tolerance: { absolute: 3e-5 * Math.max(1, Math.sqrt(rows) / 30), relative: 3e-5 } },
      );
    }
  });

  test("the variance is accurate with a mean ten thousand deviations away, and with an outlier as the first row", async () => {
    const x = normalArray([30_000, 5], 4);
    (x.data as Float32Array).forEach((value, i, data) => (data[i] = Math.fround(10_000 + (i < 5 ? 1e6 : value))));
    const flat = uniformArray([30_000, 5], 9_999, 10_001, 5);
    const parameters = [uniformArray([5], 1, 1.5), normalArray([5], 2)];
    for (const data of [x, flat])
      await checkNode(
        backend,
        "batch-norm",
        [data, ...parameters],
        { epsilon: 1e-5 },
        { tolerance: { absolute: 2e-3, relative: 1e-3 } },
      );
    const [, , variance] = await runNode(backend, "batch-norm", [flat, ...parameters], { epsilon: 1e-5 });
    for (const value of variance!.toNumbers()) expect(Math.abs(value - 1 / 3)).toBeLessThan(0.01);
  });

  test("overflowing squares do not become NaN", async () => {
    const x = NdArray.from([1e30, 1e30, 1e30, 1e30], [4, 1]);
    const [, mean, variance] = await runNode(backend, "batch-norm", [x, NdArray.from([1]), NdArray.from([0])], {
      epsilon: 1e-5,
    });
    expect(mean!.toNumbers()[0]).toBe(Math.fround(1e30));
    expect(variance!.toNumbers()[0]).toBe(0);
  });

  test("without rows, mean and variance are zero", async () => {
    const [, mean, variance] = await runNode(
      backend,
      "batch-norm",
      [NdArray.zeros("f32", [0, 3]), normalArray([3]), normalArray([3])],
      {
        epsilon: 1e-5,
      },
    );
    expect([...mean!.toNumbers(), ...variance!.toNumbers()]).toEqual([0, 0, 0, 0, 0, 0]);
  });
});
