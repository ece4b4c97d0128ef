import type { Shape } from "@skein/tensor-core";
import { operators, type ReferenceArray, type KernelNode } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Kernel } from "../kernel.ts";
import { compileWasm, instantiateWasm, type WasmBuild } from "../wasm-build.ts";
import { conv2dBackwardInputKernel } from "./conv2d-backward-input.ts";
import { conv2dBackwardWeightKernel } from "./conv2d-backward-weight.ts";
import { conv2dKernel } from "./conv2d.ts";

const builds: readonly WasmBuild[] = ["relaxed", "simd", "scalar"];

const small = (max: number, min = 1): fc.Arbitrary<number> => fc.integer({ min, max });
const pair = (max: number, min = 1): fc.Arbitrary<[number, number]> => fc.tuple(small(max, min), small(max, min));

const geometries = fc
  .record({
    batch: small(3, 0),
    image: pair(24),
    kernel: pair(4),
    stride: pair(3),
    dilation: pair(3),
    padding: fc.tuple(pair(4, 0), pair(4, 0)),
    groups: small(3),
    perGroup: small(17, 0),
    outPerGroup: small(19, 0),
  })
  .map(({ batch, image, kernel, groups, perGroup, outPerGroup, ...params }) => {
    const along = (dim: 0 | 1): number => {
      const reach = (kernel[dim] - 1) * params.dilation[dim] + 1;
      return (
        Math.floor((image[dim] + params.padding[dim][0] + params.padding[dim][1] - reach) / params.stride[dim]) + 1
      );
    };
    return {
      x: [batch, ...image, perGroup * groups],
      w: [...kernel, perGroup, outPerGroup * groups],
      y: [batch, along(0), along(1), outPerGroup * groups],
      params: { ...params, groups },
    };
  })
  .filter(({ y }) => y[1]! > 0 && y[2]! > 0);

/** Run a kernel on operands with guards behind every block of memory, and compare with the f64 reference. */
const check = (
  kernel: Kernel,
  module: WebAssembly.Module,
  shapes: readonly Shape[],
  output: Shape,
  params: KernelNode["params"],
): void => {
  const spec = (shape: Shape) => ({ dtype: "f32" as const, shape });
  const node: KernelNode = { op: kernel.op, inputs: shapes.map(spec), outputs: [spec(output)], params };
  const memory = new WebAssembly.Memory({ initial: 512, maximum: 65536, shared: true });
  const floats = new Float32Array(memory.buffer);
  let next = 1024;
  const guards: number[] = [];
  const place = (count: number, align: number): number => {
    const at = Math.ceil(next / align) * align;
    next = at + count + 4;
    guards.push(at + count);
    floats.fill(777, at + count, next);
    return at;
  };
  let state = 7;
  const inputs = shapes.map((shape): { at: number; value: ReferenceArray } => {
    const count = shape.reduce((product, size) => product * size, 1);
    const at = place(count, 1);
    for (let i = 0; i < count; i++) {
      state = (state * 16807) % 2147483647;
      floats[at + i] = (state % 2001) / 1000 - 1;
    }
    return { at, value: { spec: spec(shape), data: Float64Array.from(floats.subarray(at, at + count)) } };
  });
  const count = output.reduce((product, size) => product * size, 1);
  const result = place(count, 1);
  floats.fill(NaN, result, result + count);
  const scratchFloats = Math.ceil((kernel.scratchBytes?.(node) ?? 0) / 4);
  const scratch = place(scratchFloats, 4);
  floats.fill(NaN, scratch, scratch + scratchFloats);
  const run = kernel.bind(node, instantiateWasm(module, memory), memory);
  run(
    Int32Array.from(inputs, ({ at }) => 4 * at),
    Int32Array.of(4 * result),
    4 * scratch,
    0,
  );
  const expected = operators[kernel.op]!.reference(
    inputs.map(({ value }) => value),
    params,
    node.outputs,
  )[0]!;
  const worst = expected.reduce(
    (most, value, i) => Math.max(most, Math.abs(value - floats[result + i]!) / (1 + Math.abs(value))),
    0,
  );
  expect(worst).toBeLessThan(2e-5);
  expect(guards.every((at) => floats.subarray(at, at + 4).every((value) => value === 777))).toBe(true);
};

describe.each(builds)(
  "convolution of the %s build equals the reference and stays inside of its memory",
  async (build) => {
    const module = await compileWasm(build);
    const numRuns = build === "relaxed" ? 60 : 25;

    test("conv2d", () => {
      fc.assert(
        fc.property(geometries, ({ x, w, y, params }) => check(conv2dKernel, module, [x, w], y, params)),
        { numRuns },
      );
    });

    test("conv2d-backward-input", () => {
      fc.assert(
        fc.property(geometries, ({ x, w, y, params }) =>
          check(conv2dBackwardInputKernel, module, [y, w], x, { ...params, shape: x }),
        ),
        { numRuns },
      );
    });

    test("conv2d-backward-weight", () => {
      fc.assert(
        fc.property(geometries, ({ x, w, y, params }) =>
          check(conv2dBackwardWeightKernel, module, [x, y], w, { ...params, shape: w }),
        ),
        { numRuns },
      );
    });

    test.each([
      ["taps are cut into blocks", { x: [1, 5, 6, 200], w: [3, 3, 200, 9], y: [1, 3, 4, 9] }],
      ["many rows of output", { x: [1, 3, 700, 5], w: [2, 2, 5, 8], y: [1, 2, 699, 8] }],
    ])("%s", (_, { x, w, y }) => {
      const params = {
        stride: [1, 1],
        padding: [
          [0, 0],
          [0, 0],
        ],
        dilation: [1, 1],
        groups: 1,
      };
      check(conv2dKernel, module, [x, w], y, params);
      check(conv2dBackwardInputKernel, module, [y, w], x, { ...params, shape: x });
      check(conv2dBackwardWeightKernel, module, [x, y], w, { ...params, shape: w });
    });
  },
);
