import { describe, expect, test } from "vitest";
import { ArgumentError, ShapeError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import type { Shape } from "../shape.ts";
import { conv2d, type Conv2dOptions } from "./convolution.ts";
import { avgPool2d, maxPool2d } from "./pooling.ts";

const convolve = (x: Shape, w: Shape, options: Conv2dOptions = {}): Shape => {
  const { graph } = trace(
    (a: Tensor, b: Tensor) => conv2d(a, b, options),
    [
      { dtype: "f32", shape: x },
      { dtype: "f32", shape: w },
    ],
  );
  return graph.nodes.at(-1)!.specs[0]!.shape;
};

const pool = (fn: (x: Tensor) => Tensor, x: Shape): unknown => trace(fn, [{ dtype: "f32", shape: x }]);

describe("conv2d", () => {
  test('"same" gives ⌈size / stride⌉ positions, the larger half of the padding at the end', () => {
    expect(convolve([1, 5, 6, 1], [3, 3, 1, 1], { padding: "same" })).toEqual([1, 5, 6, 1]);
    expect(convolve([1, 5, 6, 1], [3, 3, 1, 1], { padding: "same", stride: 2 })).toEqual([1, 3, 3, 1]);
    expect(convolve([1, 5, 6, 1], [2, 4, 1, 1], { padding: "same", dilation: 2 })).toEqual([1, 5, 6, 1]);
    const { graph } = trace(
      (a: Tensor, b: Tensor) => conv2d(a, b, { padding: "same", stride: 2 }),
      [
        { dtype: "f32", shape: [1, 5, 6, 1] },
        { dtype: "f32", shape: [3, 3, 1, 1] },
      ],
    );
    expect(graph.nodes.at(-1)!.params["padding"]).toEqual([
      [1, 1],
      [0, 1],
    ]);
  });

  test.each([
    [
      "channels",
      [1, 5, 5, 3],
      [3, 3, 4, 8],
      {},
      /\[1, 5, 5, 3\] and weight \[3, 3, 4, 8\].*3 channels must equal 1 × the weight's 4/,
    ],
    ["groups", [1, 5, 5, 4], [3, 3, 2, 7], { groups: 2 }, /into 2 groups.*4 input and the 7 output/],
    ["a rank", [5, 5, 3], [3, 3, 3, 8], {}, /\[5, 5, 3\] and \[3, 3, 3, 8\]/],
    [
      "a kernel larger than the image",
      [1, 2, 9, 3],
      [3, 3, 3, 8],
      {},
      /3×3.*reaches over 3 rows, the padded image has 2/,
    ],
  ] as const)("rejects %s that do not fit, naming both", (_, x, w, options, message) => {
    expect(() => convolve(x, w, options)).toThrow(ShapeError);
    expect(() => convolve(x, w, options)).toThrow(message);
  });

  test("rejects strides and paddings out of range", () => {
    expect(() => convolve([1, 5, 5, 3], [3, 3, 3, 8], { stride: 0 })).toThrow(ArgumentError);
    expect(() =>
      convolve([1, 5, 5, 3], [3, 3, 3, 8], {
        padding: [
          [-1, 0],
          [0, 0],
        ],
      }),
    ).toThrow(/padding of rows is \[-1, 0\]/);
  });
});

describe("pooling", () => {
  test("rejects padding that could contain a window", () => {
    expect(() =>
      pool(
        (x) =>
          maxPool2d(x, {
            window: 2,
            padding: [
              [2, 0],
              [0, 0],
            ],
          }),
        [1, 4, 4, 1],
      ),
    ).toThrow(/padding \[2, 0\] with a window of 2/);
  });

  test("rejects images without pixels and of another rank", () => {
    expect(() =>
      pool(
        (x) =>
          avgPool2d(x, {
            window: 3,
            padding: [
              [2, 2],
              [2, 2],
            ],
          }),
        [1, 0, 4, 1],
      ),
    ).toThrow(/\[1, 0, 4, 1\] have no pixels/);
    expect(() => pool((x) => avgPool2d(x, { window: 2 }), [4, 4, 1])).toThrow(ShapeError);
  });
});

test("padding is a string, a number for all sides, or rows and columns", () => {
  const paddingOf = (padding: Conv2dOptions["padding"] & {}): unknown =>
    trace(
      (a: Tensor, b: Tensor) => conv2d(a, b, { padding }),
      [
        { dtype: "f32", shape: [1, 5, 6, 1] },
        { dtype: "f32", shape: [3, 3, 1, 1] },
      ],
    ).graph.nodes.at(-1)!.params["padding"];
  const ones = [
    [1, 1],
    [1, 1],
  ];
  expect(paddingOf(1)).toEqual(ones);
  expect(paddingOf([1, 1])).toEqual(ones);
  expect(paddingOf([0, [1, 2]])).toEqual([
    [0, 0],
    [1, 2],
  ]);
  for (const wrong of ["SAME", -1, 0.5, [1], [1, 2, 3], { rows: 1 }])
    expect(() => paddingOf(wrong as never)).toThrow(ArgumentError);
  expect(() => paddingOf("SAME" as never)).toThrow(
    'padding is "SAME", but it must be "same", "valid", a number for all sides, or [rows, columns]',
  );
});

test("rejects a missing pooling window", () => {
  const image = [1, 4, 4, 1] as const;
  expect(() => pool((x) => maxPool2d(x, {} as never), image)).toThrow("window is missing");
  expect(() => pool((x) => (maxPool2d as (x: Tensor) => Tensor)(x), image)).toThrow(
    "write maxPool2d(x, { window: … })",
  );
  expect(() => pool((x) => avgPool2d(x, 2 as never), image)).toThrow("write avgPool2d(x, { window: 2 })");
});
