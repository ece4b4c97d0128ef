import { NdArray, type Shape, type TensorSpec } from "@skein/tensor-core";
import { operators, type Params, type ReferenceArray } from "@skein/tensor-core/backend";
import { normalArray, uniformArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { nodeOf, runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../index.ts";
import type { KernelPlan } from "../../kernel.ts";
import { kernels } from "../../kernel-table.ts";

const f32 = (shape: Shape): TensorSpec => ({ dtype: "f32", shape });

const paramsOf = (window: number, stride: number, padding = 0): Params =>
  ({
    window: [window, window],
    stride: [stride, stride],
    dilation: [1, 1],
    padding: [
      [padding, padding],
      [padding, padding],
    ],
    countPadding: false,
  }) as never;

const pooledShape = ([n, h, w, c]: Shape, window: number, stride: number, padding = 0): number[] => {
  const along = (size: number): number => Math.floor((size + 2 * padding - window) / stride) + 1;
  return [n!, along(h!), along(w!), c!];
};

const planOf = (op: string, inputs: readonly Shape[], output: Shape, params: Params): KernelPlan =>
  kernels[op]!.plan(
    nodeOf(op, inputs.map(f32), [f32(output)], { ...params, shape: output } as never),
    minimalDevice,
    {},
    [],
  );

const referenceOf = (op: string, inputs: readonly NdArray[], output: Shape, params: Params): Float64Array => {
  const arrays = inputs.map(
    (array): ReferenceArray => ({ spec: f32(array.shape), data: Float64Array.from(array.toNumbers()) }),
  );
  return operators[op]!.reference(arrays, { ...params, shape: output } as never, [f32(output)])[0] as Float64Array;
};

test("plans stay within WebGPU's default limits", () => {
  const x = [64, 28, 28, 32];
  for (const [window, stride] of [
    [2, 2],
    [3, 2],
    [28, 1],
  ] as const) {
    const y = pooledShape(x, window, stride);
    for (const [op, inputs, output] of [
      ["max-pool2d", [x], y],
      ["max-pool2d-backward", [x, y], x],
      ["avg-pool2d", [x], y],
      ["avg-pool2d-backward", [y], x],
    ] as const)
      for (const pass of planOf(op, inputs, output, paramsOf(window, stride)).passes) {
        expect(pass.workgroupSize, pass.label).toBeLessThanOrEqual(minimalDevice.maxWorkgroupSize);
        expect(pass.bindings.length, pass.label).toBeLessThanOrEqual(minimalDevice.maxBindings);
        expect(pass.features ?? [], pass.label).toEqual([]);
      }
  }
});

describe.skipIf(!hasAdapter)("pooling on the device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const run = async (op: string, inputs: readonly NdArray[], output: Shape, params: Params): Promise<Float32Array> => {
    const [result] = await runPlan(
      backend.device,
      planOf(
        op,
        inputs.map(({ shape }) => shape),
        output,
        params,
      ),
      inputs,
      [f32(output)],
    );
    return new Float32Array(result!);
  };

  test.each([
    ["a NaN wins, wherever it stands", [1, NaN, 3, 2], NaN, [0, 1, 0, 0]],
    ["the first NaN wins", [NaN, 5, NaN, 2], NaN, [1, 0, 0, 0]],
    ["the first of equal values wins", [2, 7, 7, 7], 7, [0, 1, 0, 0]],
    ["minus infinity is a value", [-Infinity, -Infinity, -Infinity, -Infinity], -Infinity, [1, 0, 0, 0]],
  ] as const)("maximum: %s", async (_, window, value, gradient) => {
    // Five channels are processed one by one, four as a vector.
    for (const channels of [5, 4]) {
      const spread = (values: readonly number[]): number[] =>
        values.flatMap((pixel) => Array.from({ length: channels }, () => pixel));
      const x = NdArray.from(spread(window), [1, 2, 2, channels]);
      const one = [1, 1, 1, channels];
      const params = paramsOf(2, 2);
      expect([...(await run("max-pool2d", [x], one, params))]).toEqual(spread([value]));
      const g = NdArray.from(spread([1]), one);
      expect([...(await run("max-pool2d-backward", [x, g], x.shape, params))]).toEqual(spread(gradient));
      // Windows that overlap; only the first has pixels outside of the image.
      const overlapping = {
        ...paramsOf(2, 1),
        padding: [
          [0, 1],
          [0, 0],
        ],
      } as unknown as Params;
      const two = pooledShape([1, 3, 2, channels], 2, 1);
      const weights = NdArray.from(spread([1, 0]), two);
      expect([...(await run("max-pool2d-backward", [x, weights], x.shape, overlapping))]).toEqual(spread(gradient));
    }
  });

  test.each([
    ["four share a window", 12, 2],
    ["sixteen share a window", 33, 1],
  ])("few large windows: %s", async (_, size, batch) => {
    for (const channels of [8, 3]) {
      const x = normalArray([batch, size, size, channels], 1);
      const y = [batch, 1, 1, channels];
      const params = paramsOf(size, size);
      expect(planOf("max-pool2d", [x.shape], y, params).passes[0]!.label).toMatch(/(4|16) sharing/);
      expect([...(await run("max-pool2d", [x], y, params))]).toEqual([...referenceOf("max-pool2d", [x], y, params)]);
      const mean = await run("avg-pool2d", [x], y, params);
      expect(
        Math.max(...referenceOf("avg-pool2d", [x], y, params).map((value, i) => Math.abs(value - mean[i]!))),
      ).toBeLessThan(1e-6);
      const g = normalArray(y, 2);
      expect([...(await run("max-pool2d-backward", [x, g], x.shape, params))]).toEqual([
        ...referenceOf("max-pool2d-backward", [x, g], x.shape, params),
      ]);
    }
  });

  test("gradients of ties, gaps and odd edges have the reference's bits, run after run", async () => {
    for (const [window, stride, padding] of [
      [2, 2, 0],
      [2, 3, 1],
      [3, 2, 1],
      [3, 1, 2],
    ] as const) {
      const x = NdArray.from(uniformArray([2, 9, 11, 4], 0, 3, 3, "i32").toNumbers(), [2, 9, 11, 4]);
      const y = pooledShape(x.shape, window, stride, padding);
      // Integers, whose sums are exact in any order.
      const g = NdArray.from(uniformArray(y, -50, 50, 4, "i32").toNumbers(), y);
      const params = paramsOf(window, stride, padding);
      const first = await run("max-pool2d-backward", [x, g], x.shape, params);
      expect([...first], `window ${window}, stride ${stride}`).toEqual([
        ...referenceOf("max-pool2d-backward", [x, g], x.shape, params),
      ]);
      expect(await run("max-pool2d-backward", [x, g], x.shape, params)).toEqual(first);
    }
  });

  test("more than 65,535 workgroups", async () => {
    const x = NdArray.from(
      new Float32Array(65_600 * 64).map((_, i) => i % 251),
      [65_600 * 64, 1, 1, 1],
    );
    const params = paramsOf(1, 1);
    expect(planOf("max-pool2d", [x.shape], x.shape, params).passes[0]!.groups).toBeGreaterThan(65_535);
    const y = await run("max-pool2d", [x], x.shape, params);
    expect(y.every((value, i) => value === i % 251)).toBe(true);
  });
});
