import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ArgumentError, ShapeError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { elementCount, type Shape } from "../shape.ts";
import { conv2d } from "./convolution.ts";
import { conv1d, convTranspose1d, type ConvTranspose1dOptions } from "./convolution-1d.ts";
import { cast, multiply } from "./elementwise.ts";
import { sum } from "./reduce.ts";
import { convTranspose2d, type ConvTranspose2dOptions } from "./transposed-convolution.ts";

const filled = (shape: Shape, seed: number): NdArray =>
  NdArray.from(
    Array.from({ length: elementCount(shape) }, (_, i) => Math.round(4 * Math.sin(2 * i + seed))),
    shape,
  );

const shapeOf = (x: Shape, w: Shape, options: ConvTranspose2dOptions = {}): Shape =>
  trace(
    (a: Tensor, b: Tensor) => convTranspose2d(a, b, options),
    [
      { dtype: "f32", shape: x },
      { dtype: "f32", shape: w },
    ],
  ).graph.nodes.at(-1)!.specs[0]!.shape;

const along = fc.record({
  pixels: fc.integer({ min: 1, max: 4 }),
  taps: fc.integer({ min: 1, max: 3 }),
  stride: fc.integer({ min: 1, max: 3 }),
  dilation: fc.integer({ min: 1, max: 2 }),
  pad: fc.tuple(fc.nat(2), fc.nat(2)),
  extra: fc.nat(2),
});

describe("convTranspose2d", () => {
  test("is the adjoint of conv2d: ⟨conv2d(a, w), x⟩ = ⟨a, convTranspose2d(x, w)⟩", async () => {
    await fc.assert(
      fc.asyncProperty(along, along, fc.constantFrom(1, 2), fc.boolean(), async (rows, columns, groups, same) => {
        const window = [rows.taps, columns.taps] as const;
        const common = {
          stride: [rows.stride, columns.stride] as const,
          dilation: [rows.dilation, columns.dilation] as const,
          groups,
          padding: same ? ("same" as const) : ([rows.pad, columns.pad] as const),
        };
        const outputPadding = same ? 0 : ([rows.extra % rows.stride, columns.extra % columns.stride] as const);
        const x = filled([2, rows.pixels, columns.pixels, 2 * groups], 1);
        const w = filled([...window, 3, 2 * groups], 2);
        let shape: Shape;
        try {
          shape = shapeOf(x.shape, w.shape, { ...common, outputPadding });
        } catch (error) {
          // The padding may remove all rows or columns.
          expect((error as Error).message).toMatch(/^convTranspose2d: padding \[.*\] cuts all \d+ (rows|columns) off/);
          return;
        }
        const a = filled(shape, 3);
        const [left, right] = (await evaluate(
          (a: Tensor, w: Tensor, x: Tensor) => [
            sum(multiply(conv2d(a, w, common), x)),
            sum(multiply(a, convTranspose2d(x, w, { ...common, outputPadding }))),
          ],
          referenceBackend(),
        )(a, w, x)) as unknown as [NdArray, NdArray];
        // Integers, so that both sums are exact. The law also requires that conv2d(a, w) has the shape of x.
        expect(right.item()).toBe(left.item());
      }),
      { numRuns: 150 },
    );
  });

  test('sizes: stride times as large with "same", otherwise by the formula', () => {
    expect(shapeOf([2, 7, 7, 8], [4, 4, 3, 8], { stride: 2, padding: "same" })).toEqual([2, 14, 14, 3]);
    expect(shapeOf([2, 7, 5, 8], [3, 3, 3, 8], { stride: 2 })).toEqual([2, 15, 11, 3]);
    expect(shapeOf([2, 7, 5, 8], [3, 3, 3, 8], { stride: 3, outputPadding: [2, 0], dilation: 2 })).toEqual([
      2, 25, 17, 3,
    ]);
    expect(shapeOf([2, 7, 5, 8], [3, 3, 3, 8], { groups: 4 })).toEqual([2, 9, 7, 12]);
    expect(shapeOf([0, 7, 5, 8], [3, 3, 3, 8])).toEqual([0, 9, 7, 3]);
  });

  test.each([
    ["a rank", [7, 7, 8], [3, 3, 3, 8], {}, ShapeError, /takes an image \[N, H, W, C\].*got \[7, 7, 8\]/],
    [
      "channels",
      [1, 7, 7, 8],
      [3, 3, 8, 4],
      {},
      ShapeError,
      /the image's 8 channels must equal the weight's last size 4/,
    ],
    ["groups", [1, 7, 7, 8], [3, 3, 1, 8], { groups: 3 }, ShapeError, /the 8 channels .* do not split into 3 groups/],
    ["no pixels", [1, 0, 7, 8], [3, 3, 1, 8], {}, ShapeError, /lack pixels or taps/],
    [
      "output padding",
      [1, 7, 7, 8],
      [3, 3, 1, 8],
      { stride: 2, outputPadding: 2 },
      ArgumentError,
      /outputPadding \[2, 2\] is out of range/,
    ],
    [
      "output padding with same",
      [1, 7, 7, 8],
      [3, 3, 1, 8],
      { stride: 2, padding: "same", outputPadding: 1 },
      ArgumentError,
      /0 if padding is "same"/,
    ],
    ["a name", [1, 7, 7, 8], [3, 3, 1, 8], { strides: 2 }, ArgumentError, /strides/],
  ] as const)("rejects %s that does not fit", (_, x, w, options, kind, message) => {
    expect(() => shapeOf(x, w, options as never)).toThrow(kind);
    expect(() => shapeOf(x, w, options as never)).toThrow(message);
  });
});

describe("one dimension", () => {
  const run = async (fn: (x: Tensor, w: Tensor) => Tensor, x: NdArray, w: NdArray): Promise<NdArray> =>
    (await evaluate(fn, referenceBackend())(x, w)) as NdArray;

  test("conv1d, written out by hand: causal, with two taps a step apart", async () => {
    const y = await run(
      (x, w) => conv1d(x, w, { dilation: 2, padding: [2, 0] }),
      NdArray.from([1, 2, 3, 4], [1, 4, 1]),
      NdArray.from([10, 1], [2, 1, 1]),
    );
    expect(y.shape).toEqual([1, 4, 1]);
    expect(y.toNumbers()).toEqual([1, 2, 13, 24]);
  });

  test("one number of padding goes to both ends; a bias is added", async () => {
    const bias = (x: Tensor): Tensor => sum(x, { dims: [0, 1] });
    const y = await run(
      (x, w) => conv1d(x, w, { padding: 1, bias: bias(x) }),
      NdArray.from([1, 2, 3], [1, 3, 1]),
      NdArray.from([1, 1, 1], [3, 1, 1]),
    );
    expect(y.toNumbers()).toEqual([9, 12, 11]);
  });

  test("convTranspose1d, written out by hand: patches two apart, the first entry cut off, one added", async () => {
    const options: ConvTranspose1dOptions = { stride: 2, padding: [1, 0], outputPadding: 1 };
    const y = await run(
      (x, w) => convTranspose1d(x, w, options),
      NdArray.from([1, 2], [1, 2, 1]),
      NdArray.from([1, 10, 100], [3, 1, 1]),
    );
    expect(y.toNumbers()).toEqual([10, 102, 20, 200, 0]);
  });

  test("names the shapes of the caller", async () => {
    const [x, w] = [NdArray.zeros("f32", [2, 9, 4]), NdArray.zeros("f32", [3, 5, 6])];
    await expect(run((a, b) => conv1d(a, b), x, w)).rejects.toThrow(
      /conv1d: takes a sequence.*\[2, 9, 4\] and \[3, 5, 6\]/,
    );
    await expect(run((a, b) => convTranspose1d(a, b), x, w)).rejects.toThrow(/convTranspose1d: takes a sequence/);
    await expect(run((a, b) => conv1d(a, b, 2 as never), x, w)).rejects.toThrow(ArgumentError);
  });

  test.each([
    [{ padding: -1 }, /conv1d: padding before the sequence is -1; use a whole number of at least 0/],
    [{ padding: [0, 0.5] }, /conv1d: padding after the sequence is 0\.5/],
    [{ padding: "full" }, /conv1d: padding is "full"; use "same", "valid"/],
    [{ stride: [2, 2] }, /conv1d: stride is .*; use a whole number of at least 1/],
    [{ dilation: 0 }, /conv1d: dilation is 0/],
  ] as const)("rejects %j", async (options, message) => {
    const [x, w] = [NdArray.zeros("f32", [2, 9, 4]), NdArray.zeros("f32", [3, 4, 6])];
    await expect(run((a, b) => conv1d(a, b, options as never), x, w)).rejects.toThrow(message);
  });

  test("with operands of f16 the bias is f32, and the result f16", async () => {
    const half = (x: Tensor, w: Tensor): Tensor =>
      conv1d(cast(x, "f16"), cast(w, "f16"), { bias: sum(w, { dims: [0, 1] }) });
    const y = await run(half, NdArray.from([2048, 1], [1, 2, 1]), NdArray.from([1], [1, 1, 1]));
    expect(y.dtype).toBe("f16");
    // In f16, 2048 + 1 rounds to 2048 (ties to even).
    expect(y.toNumbers()).toEqual([2048, 2]);
  });

  test("rejects a bias that does not match", async () => {
    const image = NdArray.zeros("f32", [1, 3, 3, 2]);
    const weight = NdArray.zeros("f32", [1, 1, 2, 5]);
    await expect(run((x, w) => conv2d(x, w, { bias: sum(w, { dims: [0, 1, 3] }) }), image, weight)).rejects.toThrow(
      /bias f32\[2\] does not match the result f32\[1, 3, 3, 5\]; pass one number per output channel, f32\[5\]/,
    );
  });
});
