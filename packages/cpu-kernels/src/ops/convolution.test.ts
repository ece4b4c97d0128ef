import type { Shape } from "@skein/tensor-core";
import { operators, type ReferenceArray, type KernelNode } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Kernel } from "../kernel.ts";
import { shuffledTeam } from "../../test/shuffled-team.ts";
import { soloTeam, TeamFunctions } from "../team/team.ts";
import { compileWasm, instantiateWasm, type WasmBuild } from "../wasm-build.ts";
import type { ConvolutionSizes } from "../contraction-scratch.ts";
import {
  suitsWinograd,
  winogradForward,
  winogradInputGradient,
  type WinogradKernel,
  winogradWeightGradient,
} from "../winograd.ts";
import { conv2dBackwardInputKernel, inputGradientSizes } from "./conv2d-backward-input.ts";
import { conv2dBackwardWeightKernel, weightGradientSizes } from "./conv2d-backward-weight.ts";
import { conv2dKernel, forwardSizes } from "./conv2d.ts";

const builds: readonly WasmBuild[] = ["relaxed", "simd", "scalar"];

const small = (max: number, min = 1): fc.Arbitrary<number> => fc.integer({ min, max });
const pair = (max: number, min = 1): fc.Arbitrary<[number, number]> => fc.tuple(small(max, min), small(max, min));

interface Drawn {
  readonly batch: number;
  readonly image: [number, number];
  readonly kernel: [number, number];
  readonly stride: [number, number];
  readonly dilation: [number, number];
  readonly padding: [[number, number], [number, number]];
  readonly groups: number;
  readonly perGroup: number;
  readonly outPerGroup: number;
}

/** Generates valid combinations of shapes and parameters. */
const geometriesOf = (drawn: fc.Arbitrary<Drawn>) =>
  drawn
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

const paddings = fc.tuple(pair(4, 0), pair(4, 0));
const any = {
  batch: small(3, 0),
  image: pair(24),
  kernel: pair(4),
  stride: pair(3),
  dilation: pair(3),
  padding: paddings,
};
const one = fc.constant<[number, number]>([1, 1]);

const geometries = geometriesOf(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ ...any, groups: small(3), perGroup: small(17, 0), outPerGroup: small(19, 0) }),
    },
    // Depthwise: channels in vectors of 16, vectors of 4, and single channels.
    {
      weight: 1,
      arbitrary: fc.record({ ...any, groups: small(41), perGroup: fc.constant(1), outPerGroup: fc.constant(1) }),
    },
  ),
);

const fours = (most: number): fc.Arbitrary<number> => small(most).map((count) => 4 * count);

/** Geometries that Winograd's F(4, 3) supports, even if direct sums are faster. */
const winogradGeometries = geometriesOf(
  fc.record({
    batch: small(3),
    image: pair(19),
    kernel: fc.constant<[number, number]>([3, 3]),
    stride: one,
    dilation: one,
    padding: paddings,
    groups: fc.constant(1),
    perGroup: fours(5),
    outPerGroup: fours(5),
  }),
);

/**
 * Runs a kernel on operands with guards after every block of memory, once as a whole and once in three parts. Compares
 * the results with the f64 reference, and the results of both runs bitwise with each other.
 */
const check = (
  kernel: Kernel,
  module: WebAssembly.Module,
  shapes: readonly Shape[],
  output: Shape,
  params: KernelNode["params"],
  tolerance = 2e-5,
): void => {
  const spec = (shape: Shape) => ({ dtype: "f32" as const, shape });
  const node: KernelNode = { op: kernel.op, inputs: shapes.map(spec), outputs: [spec(output)], params };
  const memory = new WebAssembly.Memory({ initial: 512, maximum: 65536, shared: true });
  const floats = new Float32Array(memory.buffer);
  let next = 1024;
  const guards: number[] = [];
  const allocate = (count: number, align: number): number => {
    const at = Math.ceil(next / align) * align;
    next = at + count + 4;
    guards.push(at + count);
    floats.fill(777, at + count, next);
    return at;
  };
  let state = 7;
  const inputs = shapes.map((shape): { at: number; value: ReferenceArray } => {
    const count = shape.reduce((product, size) => product * size, 1);
    const at = allocate(count, 1);
    for (let i = 0; i < count; i++) {
      state = (state * 16807) % 2147483647;
      floats[at + i] = (state % 2001) / 1000 - 1;
    }
    return { at, value: { spec: spec(shape), data: Float64Array.from(floats.subarray(at, at + count)) } };
  });
  const count = output.reduce((product, size) => product * size, 1);
  const wasm = instantiateWasm(module, memory);
  const functions = new TeamFunctions(wasm);
  const [result, inParts] = [soloTeam(functions), shuffledTeam(3, functions)].map((team) => {
    const result = allocate(count, 1);
    floats.fill(NaN, result, result + count);
    const scratchFloats = Math.ceil((kernel.scratchBytes?.(node, team.threads) ?? 0) / 4);
    const scratch = allocate(scratchFloats, 4);
    floats.fill(NaN, scratch, scratch + scratchFloats);
    const run = kernel.bind(node, wasm, memory, team);
    run(
      Int32Array.from(inputs, ({ at }) => 4 * at),
      Int32Array.of(4 * result),
      4 * scratch,
      0,
    );
    return floats.slice(result, result + count);
  }) as [Float32Array, Float32Array];
  const expected = operators[kernel.op]!.reference(
    inputs.map(({ value }) => value),
    params,
    node.outputs,
  )[0]!;
  const worst = expected.reduce(
    (most, value, i) => Math.max(most, Math.abs(value - result[i]!) / (1 + Math.abs(value))),
    0,
  );
  expect(worst).toBeLessThan(tolerance);
  expect(new Uint32Array(inParts.buffer)).toEqual(new Uint32Array(result.buffer));
  expect(guards.every((at) => floats.subarray(at, at + 4).every((value) => value === 777))).toBe(true);
};

/** Returns a built-in kernel that uses Winograd for all sizes. */
const byWinograd = (
  kernel: Kernel,
  sizesOf: (node: never) => ConvolutionSizes,
  { scratchBytes, bind }: WinogradKernel,
): Kernel => ({
  op: kernel.op,
  scratchBytes: (node, threads) => scratchBytes(sizesOf(node as never), threads),
  bind: (node, _, __, team) => bind(sizesOf(node as never), team),
});

describe.each(builds)("convolution of the %s build equals the reference and stays inside its memory", async (build) => {
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

  test.runIf(build !== "scalar")("by Winograd, for numbers of channels that are multiples of four", () => {
    fc.assert(
      fc.property(winogradGeometries, ({ x, w, y, params }) => {
        // Rounding error grows with the number of terms of a sum; the longest sums are over the pixels.
        const pixels = y[0]! * y[1]! * y[2]!;
        const tolerance = Math.max(2e-5, 2e-6 * Math.sqrt(pixels));
        check(byWinograd(conv2dKernel, forwardSizes, winogradForward), module, [x, w], y, params, tolerance);
        const inputs = byWinograd(conv2dBackwardInputKernel, inputGradientSizes, winogradInputGradient);
        check(inputs, module, [y, w], x, { ...params, shape: x }, tolerance);
        const weights = byWinograd(conv2dBackwardWeightKernel, weightGradientSizes, winogradWeightGradient);
        check(weights, module, [x, y], w, { ...params, shape: w }, tolerance);
      }),
      { numRuns },
    );
  });

  test.each([
    ["blocks of columns and of the sum", { x: [1, 9, 10, 68], w: [3, 3, 68, 132], y: [1, 7, 8, 132] }],
    ["blocks of tiles", { x: [3, 22, 27, 12], w: [3, 3, 12, 8], y: [3, 20, 25, 8] }],
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
});

test("Winograd is chosen for 3 × 3 convolutions of stride 1 whose products outweigh their transforms", () => {
  const suits = (x: Shape, w: Shape, stride = 1, padding = 1): boolean => {
    const params = {
      stride: [stride, stride],
      padding: [
        [padding, padding],
        [padding, padding],
      ],
      dilation: [1, 1],
      groups: 1,
    };
    const spec = (shape: Shape) => ({ dtype: "f32" as const, shape });
    const inputs = [spec(x), spec(w)];
    const outputs = operators["conv2d"]!.infer(inputs, params);
    return suitsWinograd(forwardSizes({ op: "conv2d", inputs, outputs, params } as never));
  };
  expect(suits([64, 14, 14, 32], [3, 3, 32, 64])).toBe(true);
  expect(suits([8, 32, 32, 64], [3, 3, 64, 64])).toBe(true);
  expect(suits([8, 32, 32, 64], [3, 3, 64, 64], 2)).toBe(false);
  expect(suits([8, 32, 32, 64], [5, 5, 64, 64])).toBe(false);
  expect(suits([8, 32, 32, 66], [3, 3, 66, 64])).toBe(false);
  expect(suits([64, 28, 28, 4], [3, 3, 4, 32])).toBe(false);
  expect(suits([1, 4, 4, 64], [3, 3, 64, 64])).toBe(false);
  // The result of a sample must be bitwise identical for every batch size.
  expect([1, 2, 16, 64].map((batch) => suits([batch, 8, 8, 64], [3, 3, 64, 64]))).toEqual([true, true, true, true]);
  expect([1, 2, 16, 64].map((batch) => suits([batch, 14, 14, 16], [3, 3, 16, 16]))).toEqual([
    false,
    false,
    false,
    false,
  ]);
});
