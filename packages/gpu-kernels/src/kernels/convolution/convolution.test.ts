import { type DType, NdArray, type Shape, type TensorSpec } from "@skein/tensor-core";
import { operators, type OperatorParams, type ReferenceArray } from "@skein/tensor-core/backend";
import { normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { nodeOf, runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../index.ts";
import type { Kernel, KernelPlan } from "../../kernel.ts";
import { conv2dBackwardInputKernel } from "../../ops/conv2d-backward-input.ts";
import { conv2dBackwardWeightKernel } from "../../ops/conv2d-backward-weight.ts";
import { conv2dKernel } from "../../ops/conv2d.ts";
import { tiles } from "./choose.ts";
import { depthwisePass } from "./depthwise.ts";
import { directPass, directWeightPass } from "./direct.ts";
import { backwardGather, forwardGather, type Gather } from "./gather.ts";
import { flattenPointwise, type Geometry, geometryOf, isDepthwise } from "./geometry.ts";
import { stripPass } from "./strip.ts";
import { sumPartialsPass } from "./sum-partials.ts";
import { type Tile, tiledPass } from "./tiled.ts";
import { stripWeightPass } from "./weight-strip.ts";
import { tiledWeightPass } from "./weight-tiled.ts";

interface Layer {
  readonly name: string;
  readonly x: Shape;
  readonly w: Shape;
  readonly stride?: number;
  readonly padding?: number;
  readonly dilation?: number;
  readonly groups?: number;
}

interface Case {
  readonly x: Shape;
  readonly w: Shape;
  readonly y: Shape;
  readonly params: OperatorParams["conv2d"];
  readonly geometry: Geometry;
}

const caseOf = ({ x, w, stride = 1, padding = 0, dilation = 1, groups = 1 }: Layer): Case => {
  const along = (dim: 1 | 2): number =>
    Math.floor((x[dim]! + 2 * padding - (w[dim - 1]! - 1) * dilation - 1) / stride) + 1;
  const y = [x[0]!, along(1), along(2), w[3]!];
  const side = [padding, padding] as const;
  const params: OperatorParams["conv2d"] = {
    stride: [stride, stride],
    padding: [side, side],
    dilation: [dilation, dilation],
    groups,
  };
  return { x, w, y, params, geometry: geometryOf(x, w, y, params) };
};

const layers: readonly Layer[] = [
  { name: "vectors of channels, a strip per line", x: [2, 8, 8, 8], w: [3, 3, 8, 12], padding: 1 },
  { name: "odd channels", x: [2, 7, 9, 5], w: [3, 3, 5, 7], padding: 1 },
  {
    name: "stride and dilation share a divisor",
    x: [1, 11, 12, 4],
    w: [3, 3, 4, 8],
    stride: 4,
    dilation: 2,
    padding: 3,
  },
  { name: "two groups, stride 2", x: [1, 9, 8, 16], w: [3, 2, 8, 24], stride: 2, groups: 2 },
  { name: "pointwise", x: [2, 3, 5, 8], w: [1, 1, 8, 68] },
  { name: "depthwise", x: [2, 6, 7, 8], w: [3, 3, 1, 8], groups: 8, padding: 1 },
  { name: "depthwise, two outputs each, stride 2", x: [1, 6, 7, 3], w: [3, 3, 1, 6], groups: 3, stride: 2 },
];

const small: Tile = tiles.at(-1)!;
const mid: Tile = { rows: 64, columns: 32, inner: 16, rowsEach: 8, columnsEach: 4 };

const stripOptions = { operands: "f32", result: "f32" } as const;

const withSum = (pass: KernelPlan["passes"][number], splits: number, elements: number): KernelPlan => {
  const length = 4 * Math.ceil(elements / 4);
  return { scratch: [4 * splits * length], passes: [pass, sumPartialsPass({ count: splits, length, result: "f32" })] };
};

const gatherVariants = (
  geometry: Geometry,
  gatherOf: (geometry: Geometry) => Gather,
  elements: number,
): [string, KernelPlan][] => {
  const gather = gatherOf(flattenPointwise(geometry));
  return [
    ["direct", { passes: [directPass(gather)] }],
    ["strip", { passes: [stripPass(gather, { pixels: 4, ...stripOptions })] }],
    ["tiled", { passes: [tiledPass(gather, { tile: small, splits: 1, ...stripOptions })] }],
    ["tiled, 3 parts", withSum(tiledPass(gather, { tile: mid, splits: 3, ...stripOptions }), 3, elements)],
    ...(isDepthwise(geometry)
      ? [["depthwise", { passes: [depthwisePass(gather, { pixels: 4, ...stripOptions })] }] as [string, KernelPlan]]
      : []),
  ];
};

const weightVariants = (geometry: Geometry, elements: number): [string, KernelPlan][] => [
  ["direct", { passes: [directWeightPass(geometry)] }],
  ["strip, 5 parts", withSum(stripWeightPass(geometry, { splits: 5, ...stripOptions }), 5, elements)],
  ["tiled", { passes: [tiledWeightPass(geometry, { tile: small, splits: 1, ...stripOptions })] }],
  ["tiled, 70 parts", withSum(tiledWeightPass(geometry, { tile: mid, splits: 70, ...stripOptions }), 70, elements)],
];

const f32 = (shape: Shape): TensorSpec => ({ dtype: "f32", shape });

const count = (shape: Shape): number => shape.reduce((product, size) => product * size, 1);

/** Returns values of which every seventh is twenty times as large and every fifth is zero. */
const rugged = (shape: Shape, seed: number, dtype: DType = "f32"): NdArray =>
  NdArray.from(
    normalArray(shape, seed)
      .toNumbers()
      .map((value, i) => (i % 5 === 0 ? 0 : i % 7 === 0 ? 20 * value : value)),
    shape,
    dtype,
  );

const toReference = (array: NdArray): ReferenceArray => ({
  spec: { dtype: array.dtype, shape: array.shape },
  data: Float64Array.from(array.toNumbers()),
});

/**
 * Computes the reference, and per element the sum of the magnitudes of its products, to which rounding errors are
 * proportional.
 */
const referenceOf = (
  op: string,
  inputs: readonly NdArray[],
  shape: Shape,
  params: OperatorParams["conv2d"],
): { values: Float64Array; magnitudes: Float64Array } => {
  const run = (arrays: readonly ReferenceArray[]): Float64Array =>
    operators[op]!.reference(arrays, { ...params, shape } as never, [f32(shape)])[0] as Float64Array;
  const arrays = inputs.map(toReference);
  return { values: run(arrays), magnitudes: run(arrays.map(({ spec, data }) => ({ spec, data: data.map(Math.abs) }))) };
};

const worstError = (actual: ArrayLike<number>, { values, magnitudes }: ReturnType<typeof referenceOf>): number =>
  values.reduce((most, value, i) => {
    const error = Math.abs(value - actual[i]!) / (1e-30 + magnitudes[i]!);
    return error <= most ? most : error; // NaN stays NaN
  }, 0);

/** Maximum error of sums of a few hundred terms, relative to the sum of their magnitudes: a few roundings of 2⁻²⁴. */
const bound = 1e-6;

const threeOf = ({ x, w, y }: Case): [Kernel, readonly Shape[], Shape][] => [
  [conv2dKernel, [x, w], y],
  [conv2dBackwardInputKernel, [y, w], x],
  [conv2dBackwardWeightKernel, [x, y], w],
];

test("plans stay within WebGPU's default limits", () => {
  const large: readonly Layer[] = [
    { name: "MNIST first", x: [128, 28, 28, 1], w: [3, 3, 1, 32], padding: 1 },
    { name: "MNIST second", x: [128, 14, 14, 32], w: [3, 3, 32, 64], padding: 1 },
    { name: "ResNet", x: [32, 32, 32, 64], w: [3, 3, 64, 64], padding: 1 },
    { name: "ResNet last", x: [32, 4, 4, 512], w: [3, 3, 512, 512], padding: 1 },
    { name: "patches", x: [8, 224, 224, 3], w: [16, 16, 3, 192], stride: 16 },
  ];
  for (const layer of [...layers, ...large]) {
    const one = caseOf(layer);
    for (const [kernel, inputs, output] of threeOf(one)) {
      const { passes, scratch = [] } = kernel.plan(
        nodeOf(kernel.op, inputs.map(f32), [f32(output)], one.params),
        minimalDevice,
        {},
        [],
      );
      for (const pass of passes) {
        const where = `${layer.name}, ${kernel.op}, ${pass.label}`;
        const shared = [...pass.code.matchAll(/var<workgroup> \w+: array<vec4<f32>, (\d+)>/g)].reduce(
          (sum, [, size]) => sum + 16 * Number(size),
          0,
        );
        expect(shared, where).toBeLessThanOrEqual(minimalDevice.maxWorkgroupBytes);
        expect(pass.workgroupSize, where).toBeLessThanOrEqual(minimalDevice.maxWorkgroupSize);
        expect(pass.bindings.length, where).toBeLessThanOrEqual(minimalDevice.maxBindings);
        expect(pass.features ?? [], where).toEqual([]);
        expect(pass.groups, where).toBeGreaterThan(0);
      }
      expect(Math.max(0, ...scratch), `${layer.name}, ${kernel.op}`).toBeLessThanOrEqual(minimalDevice.maxBindingBytes);
    }
  }
});

test("splits long sums with small results, but not short sums", () => {
  const planOf = (kernel: Kernel, layer: Layer): KernelPlan => {
    const one = caseOf(layer);
    const [, inputs, output] = threeOf(one).find(([other]) => other === kernel)!;
    return kernel.plan(nodeOf(kernel.op, inputs.map(f32), [f32(output)], one.params), minimalDevice, {}, []);
  };
  const second: Layer = { name: "", x: [128, 14, 14, 32], w: [3, 3, 32, 64], padding: 1 };
  const last: Layer = { name: "", x: [4, 4, 4, 512], w: [3, 3, 512, 512], padding: 1 };
  expect(planOf(conv2dBackwardWeightKernel, second).passes.length).toBe(2);
  expect(planOf(conv2dKernel, second).passes.length).toBe(1);
  expect(planOf(conv2dKernel, last).passes.length).toBe(2);
});

test("rejects f16 with a reason if the device does not support it", () => {
  const { x, w, y, params } = caseOf(layers[0]!);
  const node = nodeOf(
    "conv2d",
    [
      { dtype: "f16", shape: x },
      { dtype: "f16", shape: w },
    ],
    [f32(y)],
    params,
  );
  expect(conv2dKernel.refuses!(node, minimalDevice)).toMatch(/no shader-f16; cast the operands to f32/);
  expect(conv2dKernel.refuses!(node, { ...minimalDevice, f16: true })).toBeUndefined();
  expect(conv2dKernel.refuses!(nodeOf("conv2d", [f32(x), f32(w)], [f32(y)], params), minimalDevice)).toBeUndefined();
});

describe.skipIf(!hasAdapter)("convolutions on the device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  describe.each(layers)("$name: every variant equals the reference and stays inside its memory", (layer) => {
    const one = caseOf(layer);
    const [x, w, g] = [rugged(one.x, 1), rugged(one.w, 2), rugged(one.y, 3)];

    test.each([
      ["conv2d", [x, w], one.y, gatherVariants(one.geometry, forwardGather, count(one.y))],
      ["conv2d-backward-input", [g, w], one.x, gatherVariants(one.geometry, backwardGather, count(one.x))],
      ["conv2d-backward-weight", [x, g], one.w, weightVariants(one.geometry, count(one.w))],
    ] as const)("%s", async (op, inputs, shape, variants) => {
      const expected = referenceOf(op, inputs, shape, one.params);
      for (const [name, plan] of variants) {
        const [result] = await runPlan(backend.device, plan, inputs, [f32(shape)]);
        expect(worstError(new Float32Array(result!), expected), name).toBeLessThan(bound);
      }
    });
  });

  test("plans of a device without features equal the reference, and a second run gives the same bits", async () => {
    const one = caseOf({ name: "", x: [3, 10, 10, 36], w: [3, 3, 36, 68], padding: 1 });
    const [x, w, g] = [rugged(one.x, 1), rugged(one.w, 2), rugged(one.y, 3)];
    for (const [[kernel, shapes, shape], inputs] of threeOf(one).map(
      (row, i) =>
        [
          row,
          [
            [x, w],
            [g, w],
            [x, g],
          ][i]!,
        ] as const,
    )) {
      const plan = kernel.plan(nodeOf(kernel.op, shapes.map(f32), [f32(shape)], one.params), minimalDevice, {}, []);
      const [first] = await runPlan(backend.device, plan, inputs, [f32(shape)]);
      const [second] = await runPlan(backend.device, plan, inputs, [f32(shape)]);
      expect(
        worstError(new Float32Array(first!), referenceOf(kernel.op, inputs, shape, one.params)),
        kernel.op,
      ).toBeLessThan(bound);
      expect(new Uint8Array(second!), kernel.op).toEqual(new Uint8Array(first!));
    }
  });

  test("f16 operands, f16 result: sums are f32 and rounded once", async ({ skip }) => {
    if (!backend.facts.f16) skip("the adapter has no f16");
    const facts = { ...minimalDevice, f16: true };
    const one = caseOf({ name: "", x: [1, 6, 6, 60], w: [3, 3, 60, 20], padding: 1 });
    const [x, w] = [normalArray(one.x, 1, "f16"), normalArray(one.w, 2, "f16")];
    const half = (shape: Shape): TensorSpec => ({ dtype: "f16", shape });
    const plan = conv2dKernel.plan(
      nodeOf("conv2d", [half(one.x), half(one.w)], [half(one.y)], one.params),
      facts,
      {},
      [],
    );
    const [result] = await runPlan(backend.device, plan, [x, w], [half(one.y)]);
    const actual = new NdArray("f16", one.y, new Uint16Array(result!) as never).toNumbers();
    expect(worstError(actual, referenceOf("conv2d", [x, w], one.y, one.params))).toBeLessThan(6e-4);
  });

  test("more than 65,535 workgroups", async () => {
    const batch = 65_600 * 64;
    const one = caseOf({ name: "", x: [batch, 1, 1, 1], w: [1, 1, 1, 1] });
    const x = NdArray.from(
      new Float32Array(batch).map((_, i) => i % 251),
      one.x,
    );
    const gather = forwardGather(one.geometry);
    const pass = stripPass(gather, { pixels: 1, ...stripOptions });
    expect(pass.groups).toBeGreaterThan(65_535);
    const [result] = await runPlan(backend.device, { passes: [pass] }, [x, NdArray.from([3], one.w)], [f32(one.y)]);
    expect(new Float32Array(result!).every((value, i) => value === 3 * (i % 251))).toBe(true);
  });
});
