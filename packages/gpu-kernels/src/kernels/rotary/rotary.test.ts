import type { Shape } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { type RotaryParams, rotaryPlan } from "./rotary.ts";

describe("rotary", () => {
  test("stores nothing per position, and batches share a pipeline", () => {
    const params: RotaryParams = { base: 10_000, offset: 0, sign: 1 };
    const plans = [8, 800].map((batch) => rotaryPlan({ dtype: "f32", shape: [batch, 4096, 64] }, params));
    expect(plans[0]!.constants![0]!.byteLength).toBe(3 * 4 * 32);
    expect(plans[0]!.passes[0]!.code).toBe(plans[1]!.passes[0]!.code);
  });
});

describe.skipIf(!hasAdapter)("rotary on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const cases: readonly (readonly [Shape, RotaryParams])[] = [
    [[5, 7, 6], { base: 10_000, offset: 3, sign: 1 }],
    [[2, 3, 33, 64], { base: 500_000, offset: 1_000_000, sign: 1 }],
    [[1, 3000, 8], { base: 10_000, offset: 0, sign: -1 }],
    [[9, 11, 16], { base: 2, offset: 2.5, sign: 1 }],
  ];

  // If angles were computed in f32 or read from a table of f32, the errors would be 1e-7 times the position.
  test.each(cases)("%j rotated by %j is exact at any position", async (shape, params) => {
    const x = normalArray(shape, 1);
    const spec = { dtype: "f32", shape } as const;
    const [first] = await runPlan(backend.device, rotaryPlan(spec, params), [x], [spec]);
    const [second] = await runPlan(backend.device, rotaryPlan(spec, params), [x], [spec]);
    expect(new Uint8Array(first!)).toEqual(new Uint8Array(second!));
    const y = new Float32Array(first!);
    const [positions, width] = shape.slice(-2) as [number, number];
    const half = width / 2;
    let worst = 0;
    x.data.forEach((value, at) => {
      const [row, i] = [Math.floor(at / width), at % width];
      const angle = params.sign * ((row % positions) + params.offset) * params.base ** ((-2 * (i % half)) / width);
      const turned =
        i < half
          ? value * Math.cos(angle) - x.data[at + half]! * Math.sin(angle)
          : value * Math.cos(angle) + x.data[at - half]! * Math.sin(angle);
      worst = Math.max(worst, Math.abs(y[at]! - turned));
    });
    expect(worst).toBeLessThan(1e-6);
  });
});
