import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NdArray, type NestedNumbers, SkeinError } from "./index.ts";

/** Converts flat values to nested lists of the given shape. */
const nest = (values: readonly number[], shape: readonly number[]): NestedNumbers => {
  if (shape.length === 0) return values[0]!;
  const [size, ...inner] = shape as [number, ...number[]];
  const stride = values.length / size;
  return Array.from({ length: size }, (_, i) => nest(values.slice(i * stride, (i + 1) * stride), inner));
};

const loose = NdArray as unknown as { readonly [name: string]: (...args: unknown[]) => NdArray };

describe("nested lists", () => {
  const shapes = fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 });

  test("have the shape of the lists and the values in row-major order", () => {
    fc.assert(
      fc.property(shapes, (shape) => {
        const values = Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, i) => i);
        const array = NdArray.from(nest(values, shape));
        expect(array.shape).toEqual(shape);
        expect(array.toNumbers()).toEqual(values);
      }),
    );
  });

  test("may be empty, and may get another shape with the same number of values", () => {
    expect(NdArray.from([[], []]).shape).toEqual([2, 0]);
    expect(
      NdArray.from(
        [
          [1, 2],
          [3, 4],
        ],
        [4],
        "i32",
      ),
    ).toMatchObject({ dtype: "i32", shape: [4] }); // prettier-ignore
  });

  test("are rejected if rows differ, at any depth", () => {
    const many = fc.array(fc.integer({ min: 2, max: 3 }), { minLength: 2, maxLength: 4 });
    fc.assert(
      fc.property(many, fc.nat(), fc.boolean(), (shape, depth, longer) => {
        const nested = nest(
          Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, i) => i),
          shape,
        );
        // The first list of each depth determines the expected length, so change the last list.
        let list = nested as NestedNumbers[];
        for (let d = 0; d <= depth % (shape.length - 1); d++) list = list.at(-1) as NestedNumbers[];
        if (longer) list.push(list[0]!);
        else list.pop();
        expect(() => NdArray.from(nested)).toThrow(/lists of the same depth must have the same length/);
      }),
    );
  });

  test.each<[message: string, value: unknown]>([
    ["the list at [1] has 1 entries, the first of its depth has 2", [[1, 2], [3]]],
    ["3 at [1] is a number, but others are lists", [[1], 3]],
    ["[3] at [1] is a list, but others are numbers", [1, [3]]],
    ['"1" at [0] is not a number', ["1", 2]],
    ["nothing at [1] is not a number", [1, undefined]],
    ["nothing at [1] is not a number", [1, , 3]], // oxlint-disable-line no-sparse-arrays
    ["true at [0, 0] is not a number", [[true]]],
    ["nothing is not a number", undefined],
  ])("NdArray.from: %s", (message, value) => expect(() => loose["from"]!(value)).toThrow(`NdArray.from: ${message}`));
});

describe("invalid arrays", () => {
  test.each<[message: string, call: () => unknown]>([
    ['NdArray.from: there is no dtype "f64"', () => loose["from"]!([1, 2], [2], "f64")],
    ['NdArray.from: got "f32" instead of a shape', () => loose["from"]!([1, 2], "f32")],
    ["NdArray.from: shape [-2,-3] has the size -2 in dimension 0", () => NdArray.from([1, 2, 3, 4, 5, 6], [-2, -3])],
    ["NdArray.from: shape [1.5,2] has the size 1.5 in dimension 0", () => NdArray.from([1, 2, 3], [1.5, 2])],
    ["shape [3] holds 3 elements, but 2 were given", () => NdArray.from([1, 2], [3])],
    ['NdArray.zeros: there is no dtype "f64"', () => loose["zeros"]!("f64", [2])],
    ["shape [1000000, 1000000000] takes", () => NdArray.zeros("f32", [1e6, 1e9])],
    [
      "f32 needs data in a Float32Array, but the data is the list [1,2]; use NdArray.from",
      () => new NdArray("f32", [2], [1, 2] as never),
    ],
    [
      "f16 needs data in a Uint16Array, but the data is a Float32Array of 2 values",
      () => new NdArray("f16", [2], new Float32Array(2)),
    ],
  ])("%s", (message, call) => {
    expect(call).toThrow(SkeinError);
    expect(call).toThrow(message);
  });
});
