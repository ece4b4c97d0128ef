import { NdArray, type Shape } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { assertClose, gradedSpectrum, normalArray, symmetricArray, withSpectrum } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { planNode, runNode } from "../../../test/run-node.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../index.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { eighNaive, qrNaive } from "./naive.ts";

const f32 = (shape: Shape): { readonly dtype: "f32"; readonly shape: Shape } => ({ dtype: "f32", shape });

/** Returns the maximum magnitude of the entries of `xᵀ x − 1` for x [rows, columns]. */
const unorthogonal = (x: readonly number[], rows: number, columns: number): number => {
  let most = 0;
  for (let i = 0; i < columns; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = i === j ? -1 : 0;
      for (let k = 0; k < rows; k++) sum += x[k * columns + i]! * x[k * columns + j]!;
      most = Math.max(most, Math.abs(sum));
    }
  }
  return most;
};

/** Returns the maximum magnitude of any entry of `a v − v diag(λ)`, in units of the largest |λ|. */
const residual = (a: readonly number[], values: readonly number[], vectors: readonly number[]): number => {
  const size = values.length;
  let most = 0;
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      let sum = -values[j]! * vectors[i * size + j]!;
      for (let k = 0; k < size; k++) sum += a[i * size + k]! * vectors[k * size + j]!;
      most = Math.max(most, Math.abs(sum));
    }
  }
  return most / Math.max(...values.map(Math.abs));
};

describe("plans of orthogonal decompositions", () => {
  test("the rounds of all sweeps share their pipelines", () => {
    const { passes } = planNode("eigh", [f32([512, 512])], {});
    // Each sweep has 31 rounds of two passes.
    expect((passes.length - 4) % (31 * 2)).toBe(0);
    expect(new Set(passes.map(({ code }) => code)).size).toBe(6);
  });

  test("small matrices take one pass, one workgroup each", () => {
    expect(planNode("eigh", [f32([1000, 32, 32])], {}).passes.map(({ groups }) => groups)).toEqual([1000]);
  });

  test("the blocks of a matrix share their pipelines", () => {
    const { passes } = planNode("qr", [f32([600, 512])], {});
    expect(passes.length).toBe(1 + 1 + 32 + 31 + 1 + 32);
    expect(new Set(passes.map(({ code }) => code)).size).toBe(6);
  });
});

describe.skipIf(!hasAdapter)("orthogonal decompositions on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const checkEigen = async (a: NdArray): Promise<void> => {
    const size = a.shape.at(-1)!;
    const [values, vectors] = await runNode(backend, "eigh", [a], {}, { facts: minimalDevice, runs: 2 });
    const [d, v] = [values!.toNumbers(), vectors!.toNumbers()];
    expect(residual(a.toNumbers(), d, v)).toBeLessThan(3e-6);
    expect(unorthogonal(v, size, size)).toBeLessThan(4e-6);
    expect(d).toEqual(d.toSorted((x, y) => x - y));
  };

  test("eigh by blocks at default limits: residual and orthogonality", () => checkEigen(symmetricArray([], 64, 2)));

  test.each([
    ["odd", symmetricArray([], 201, 3)],
    ["condition 1e6", withSpectrum(gradedSpectrum(128, 1e6))],
    ["equal values", withSpectrum(Array.from({ length: 96 }, (_, k) => (k < 60 ? 1 : -3)))],
    [
      "diagonal",
      NdArray.from(
        Array.from({ length: 40 * 40 }, (_, at) => (at % 41 === 0 ? 40 - at / 41 : 0)),
        [40, 40],
      ),
    ],
    ["large", symmetricArray([], 512, 4)],
  ] as const)("eigh by blocks, %s", { tags: "full", timeout: 600_000 }, (_, a) => checkEigen(a));

  test.each([
    [64, 64],
    [70, 33],
  ])("qr of %d × %d at default limits: product and orthogonality", async (rows, columns) => {
    const a = normalArray([rows, columns], 5);
    const [q, r] = await runNode(backend, "qr", [a], {}, { facts: minimalDevice, runs: 2 });
    const [given, x, y] = [a, q!, r!].map((array) => array.toNumbers()) as [number[], number[], number[]];
    expect(unorthogonal(x, rows, columns)).toBeLessThan(2e-6);
    given.forEach((entry, at) => {
      const [i, j] = [Math.floor(at / columns), at % columns];
      let sum = 0;
      for (let k = 0; k < columns; k++) sum += x[i * columns + k]! * y[k * columns + j]!;
      expect(Math.abs(sum - entry)).toBeLessThan(1e-5);
    });
  });

  test("more matrices than a grid has workgroups along one dimension", { tags: "full" }, async () => {
    const batch = 66_000;
    const a = NdArray.from(
      Array.from({ length: batch * 4 }, (_, at) => [1, 0, 2, Math.floor(at / 4)][at % 4]!),
      [batch, 2, 2],
    );
    const [values] = await runNode(backend, "eigh", [a], {});
    const sums = values!.toNumbers();
    // The sum of the eigenvalues is the trace, 1 + k.
    for (let k = 0; k < batch; k++)
      expect(Math.abs(sums[2 * k]! + sums[2 * k + 1]! - 1 - k)).toBeLessThanOrEqual(1e-6 * (k + 4));
  });

  test("the naive variants are the definitions", async () => {
    const [batch, size] = [70, 5];
    const cases = [
      ["eigh", symmetricArray([batch], size, 7), eighNaive(batch, size)],
      ["qr", normalArray([batch, size, size], 8), qrNaive(batch, size, size)],
    ] as const;
    for (const [op, a, plan] of cases) {
      const specs = operators[op]!.infer([a], {});
      const bits = await runPlan(backend.device, plan, [a], specs);
      const expected = operators[op]!.reference(
        [{ spec: f32(a.shape), data: Float64Array.from(a.toNumbers()) }],
        {},
        specs,
      );
      specs.forEach((spec, i) =>
        assertClose(new NdArray("f32", spec.shape, new Float32Array(bits[i]!)), { spec, data: expected[i]! }, op, {
          absolute: 2e-4,
          relative: 1e-4,
        }),
      );
    }
  });
});
