import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { valueAndGrad } from "../autodiff/vjp.ts";
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { cast } from "./elementwise.ts";
import { gather } from "./indexing.ts";
import {
  broadcastTo,
  concat,
  expandDims,
  flatten,
  pad,
  reshape,
  slice,
  split,
  squeeze,
  stack,
  swapDims,
  transpose,
} from "./movement.ts";
import { sum } from "./reduce.ts";

const run = async (fn: (x: Tensor) => Tensor, x: NdArray): Promise<NdArray> =>
  evaluate(fn, referenceBackend())(x) as Promise<NdArray>;
const range = (shape: number[]): NdArray =>
  NdArray.from(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => i),
    shape,
  );
const shapes = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 4 });

describe("values written out by hand", () => {
  test("broadcastTo repeats rows and columns", async () => {
    expect((await run((x) => broadcastTo(x, [2, 3]), NdArray.from([1, 2, 3]))).toNumbers()).toEqual([1, 2, 3, 1, 2, 3]);
    expect((await run((x) => broadcastTo(x, [2, 3]), NdArray.from([1, 2], [2, 1]))).toNumbers()).toEqual([
      1, 1, 1, 2, 2, 2,
    ]);
  });

  test("transpose moves dimension permutation[d] to d", async () => {
    const y = await run((x) => transpose(x, [2, 0, 1]), range([2, 3, 2]));
    expect(y.shape).toEqual([2, 2, 3]);
    expect(y.toNumbers()).toEqual([0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]);
  });

  test("slice steps, and counts from the end", async () => {
    expect((await run((x) => slice(x, [1], [-1], [3]), range([9]))).toNumbers()).toEqual([1, 4, 7]);
    expect((await run((x) => slice(x, [0, -2]), range([2, 4]))).toNumbers()).toEqual([2, 3, 6, 7]);
  });

  test("pad surrounds", async () => {
    const y = await run(
      (x) =>
        pad(
          x,
          [
            [1, 0],
            [0, 2],
          ],
          9,
        ),
      range([1, 2]),
    );
    expect(y.shape).toEqual([2, 4]);
    expect(y.toNumbers()).toEqual([9, 9, 9, 9, 0, 1, 9, 9]);
  });

  test("stack adds a dimension, squeeze and expandDims are inverse", async () => {
    expect((await run((x) => stack([x, x], { dim: 1 }), range([2]))).toNumbers()).toEqual([0, 0, 1, 1]);
    expect((await run((x) => squeeze(expandDims(x, { dims: [0, -1] })), range([2, 3]))).shape).toEqual([2, 3]);
    expect((await run((x) => expandDims(x, { dims: [0, 2] }), range([2, 3]))).shape).toEqual([1, 2, 1, 3]);
    expect((await run((x) => flatten(x, { first: 1, last: 2 }), range([2, 3, 4, 5]))).shape).toEqual([2, 12, 5]);
    expect((await run((x) => reshape(x, [-1, 4]), range([2, 6]))).shape).toEqual([3, 4]);
  });
});

describe("laws", () => {
  test("a permutation followed by its inverse is the identity", async () => {
    await fc.assert(
      fc.asyncProperty(shapes, fc.nat(), async (shape, seed) => {
        const order = shape
          .map((_, dim) => dim)
          .sort((a, b) => (((a + 1) * (seed + 7)) % 5) - (((b + 1) * (seed + 7)) % 5));
        const y = await run(
          (x) =>
            transpose(
              transpose(x, order),
              order.map((_, dim) => order.indexOf(dim)),
            ),
          range(shape),
        );
        expect(y.shape).toEqual(shape);
        expect(y.toNumbers()).toEqual(range(shape).toNumbers());
      }),
    );
  });

  test("concat undoes split", async () => {
    await fc.assert(
      fc.asyncProperty(shapes, fc.nat(3), fc.nat(4), async (shape, where, cut) => {
        const dim = where % shape.length;
        const first = Math.min(cut, shape[dim]!);
        const y = await run((x) => concat(split(x, [first, shape[dim]! - first], { dim }), { dim }), range(shape));
        expect(y.toNumbers()).toEqual(range(shape).toNumbers());
      }),
    );
  });

  test("slicing undoes padding", async () => {
    await fc.assert(
      fc.asyncProperty(shapes, fc.nat(3), fc.nat(3), async (shape, low, high) => {
        const y = await run(
          (x) =>
            slice(
              pad(
                x,
                shape.map(() => [low, high] as const),
                7,
              ),
              shape.map(() => low),
              shape.map((size) => low + size),
            ),
          range(shape),
        );
        expect(y.toNumbers()).toEqual(range(shape).toNumbers());
      }),
    );
  });

  test("swapDims twice is the identity", async () => {
    expect((await run((x) => swapDims(swapDims(x, 0, -1), 0, -1), range([2, 3, 5]))).toNumbers()).toEqual(
      range([2, 3, 5]).toNumbers(),
    );
  });
});

test("gradients of 16-bit floats are added in f32 and returned in 16 bits", async () => {
  const fn = (x: Tensor, i: Tensor): readonly Tensor[] => {
    const wide = (y: Tensor): Tensor => sum(cast(y, "f32"));
    return [
      valueAndGrad((own: Tensor) => wide(broadcastTo(own, [3, 2])))(x)[1],
      valueAndGrad((own: Tensor) => wide(gather(own, i)))(x)[1],
    ];
  };
  const [stretched, gathered] = (await evaluate(fn, referenceBackend())(
    NdArray.from([1, 2], [2], "f16"),
    NdArray.from([1, 1, 0, 1], [4], "i32"),
  )) as unknown as [NdArray, NdArray];
  expect([stretched.dtype, gathered.dtype]).toEqual(["f16", "f16"]);
  expect(stretched.toNumbers()).toEqual([3, 3]);
  expect(gathered.toNumbers()).toEqual([1, 3]);
});

describe("errors name both values", () => {
  const x = range([2, 3]);
  const cases: [string, (x: Tensor) => Tensor, RegExp][] = [
    ["broadcast-to", (x) => broadcastTo(x, [4, 2]), /\[2, 3\] does not broadcast to \[4, 2\]/],
    ["reshape", (x) => reshape(x, [4, 2]), /\[2, 3\] has 6 elements, \[4, 2\] has 8/],
    ["reshape -1", (x) => reshape(x, [-1, 4]), /6 elements, which leaves no single size for -1 in \[-1, 4\]/],
    ["slice", (x) => slice(x, [0, 1], [2, 5]), /1:5:1 is out of range for dimension 1 of \[2, 3\]/],
    ["transpose", (x) => transpose(x, [0, 0]), /\[0, 0\] is not a permutation/],
    ["squeeze", (x) => squeeze(x, { dims: 0 }), /has size 2, not 1/],
    ["concat", (x) => concat([x, reshape(x, [3, 2])]), /f32\[2, 3\] and f32\[3, 2\] do not fit along dimension 0/],
    ["split", (x) => split(x, 2, { dim: 1 })[0]!, /size 3, which cannot be split into \[1\.5, 1\.5\]/],
  ];
  test.each(cases)("%s", async (_, fn, message) => {
    await expect(run(fn, x)).rejects.toThrow(message);
    await expect(run(fn, x)).rejects.toThrow(ShapeError);
  });
});
