import { NdArray, type Shape } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { assertClose, normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { checkNode, planNode, runNode } from "../../../test/run-node.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../index.ts";
import { choleskyNaive } from "./naive.ts";

/** Returns symmetric, diagonally dominant matrices, which are therefore positive definite. */
const definite = (batch: number, size: number): NdArray => {
  const random = normalArray([batch, size, size], 1).toNumbers();
  const values = random.map((_, at) => {
    const [i, j] = [Math.floor(at / size) % size, at % size];
    const start = at - i * size - j;
    return i === j ? 1 + 0.1 * size : 0.1 * random[start + Math.max(i, j) * size + Math.min(i, j)]!;
  });
  return NdArray.from(values, [batch, size, size]);
};

/** Returns matrices with two nonzero triangles and a diagonal around ±2. */
const triangle = (batch: number, size: number): NdArray => {
  const values = normalArray([batch, size, size], 2)
    .toNumbers()
    .map((value, at) =>
      Math.floor(at / size) % size === at % size ? Math.sign(value) * (2 + Math.abs(value)) : value / Math.sqrt(size),
    );
  return NdArray.from(values, [batch, size, size]);
};

const square = (shape: Shape): { readonly dtype: "f32"; readonly shape: Shape } => ({ dtype: "f32", shape });
const solveParams = { lower: true, transpose: false, unitDiagonal: false };

describe("plans of decompositions", () => {
  test("the steps of all blocks share their pipelines", () => {
    const { passes } = planNode("cholesky", [square([4096, 4096])], {});
    expect(passes.length).toBe(1 + 63 * 3 + 1);
    expect(new Set(passes.map(({ code }) => code)).size).toBe(4);
    const solve = planNode("triangular-solve", [square([4096, 4096]), square([4096, 300])], solveParams);
    expect(solve.passes.length).toBe(1 + 63 * 2 + 1);
    expect(new Set(solve.passes.map(({ code }) => code)).size).toBe(3);
  });

  test("small matrices take one pass, one workgroup each", () => {
    expect(planNode("cholesky", [square([1000, 64, 64])], {}).passes.map(({ groups }) => groups)).toEqual([1000]);
    expect(
      planNode("triangular-solve", [square([1000, 64, 64]), square([1000, 64, 16])], solveParams).passes,
    ).toHaveLength(1);
  });
});

describe.skipIf(!hasAdapter)("decompositions on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each([
    [1, 1],
    [3, 63],
    [1, 64],
    [2, 65],
    [1, 128],
    [1, 201],
  ])(
    "cholesky of %d matrices of %d rows at default limits",
    async (batch, size) => {
      for (const facts of [minimalDevice, { ...minimalDevice, software: true }])
        await checkNode(backend, "cholesky", [definite(batch, size)], {}, { facts });
    },
    600_000,
  );

  test.each([
    [1, 1, 1],
    [3, 64, 5],
    [2, 65, 17],
    [1, 201, 130],
  ])(
    "triangular solve of %d systems of %d rows and %d columns at default limits",
    async (batch, size, columns) => {
      const inputs = [triangle(batch, size), normalArray([batch, size, columns], 3)];
      for (const lower of [true, false]) {
        for (const transpose of [false, true]) {
          for (const unitDiagonal of [false, true])
            await checkNode(
              backend,
              "triangular-solve",
              inputs,
              { lower, transpose, unitDiagonal },
              { facts: minimalDevice, tolerance: { absolute: 1e-4, relative: 1e-4 } },
            );
        }
      }
    },
    600_000,
  );

  test("512 rows: a = l lᵀ to the rounding of f32", async () => {
    const size = 512;
    const a = definite(1, size);
    const [l] = await runNode(backend, "cholesky", [a], {}, { facts: backend.facts, runs: 2 });
    const [given, factor] = [a.toNumbers(), l!.toNumbers()];
    let [error, norm] = [0, 0];
    for (let i = 0; i < size; i++) {
      for (let j = 0; j <= i; j++) {
        let sum = 0;
        for (let k = 0; k <= j; k++) sum += factor[i * size + k]! * factor[j * size + k]!;
        error += (given[i * size + j]! - sum) ** 2;
        norm += given[i * size + j]! ** 2;
      }
      for (let j = i + 1; j < size; j++) expect(factor[i * size + j]).toBe(0);
    }
    expect(Math.sqrt(error / norm)).toBeLessThan(5e-7);
  });

  test("a pivot that is not positive gives NaN only in later entries", async () => {
    for (const [size, failing] of [
      [20, 0],
      [20, 7],
      [130, 64],
      [200, 100],
    ] as const) {
      for (const pivot of [0, -1, Number.NaN]) {
        const a = definite(1, size);
        a.data[failing * (size + 1)] = pivot * size;
        await checkNode(backend, "cholesky", [a], {}, { facts: minimalDevice });
        const [l] = await runNode(backend, "cholesky", [a], {}, { facts: minimalDevice });
        const wrong = l!.toNumbers().flatMap((value, at) => {
          const [i, j] = [Math.floor(at / size), at % size];
          return Number.isNaN(value) === (i >= j && j >= failing) ? [] : [[i, j]];
        });
        expect(wrong).toEqual([]);
      }
    }
  }, 600_000);

  test("more matrices than a grid has workgroups along one dimension", async () => {
    const batch = 66_000;
    await checkNode(backend, "cholesky", [definite(batch, 2)], {});
  });

  test("the naive variant is the definition", async () => {
    const a = definite(70, 5);
    const [spec] = operators["cholesky"]!.infer([a], {});
    const [bits] = await runPlan(backend.device, choleskyNaive(70, 5), [a], [spec!]);
    const [expected] = operators["cholesky"]!.reference([{ spec: spec!, data: Float64Array.from(a.toNumbers()) }], {}, [
      spec!,
    ]);
    assertClose(new NdArray("f32", spec!.shape, new Float32Array(bits!)), { spec: spec!, data: expected! }, "naive");
  });
});
