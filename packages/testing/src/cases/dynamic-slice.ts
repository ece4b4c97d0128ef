import { add, dtypes, dynamicSlice, dynamicUpdateSlice, multiply, NdArray, type Shape } from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray } from "../seeded.ts";

const exact = { absolute: 0, relative: 0 };

const starts = (...values: number[]): NdArray => NdArray.from(values, [values.length], "i32");

const windows: readonly (readonly [name: string, shape: Shape, starts: readonly number[], sizes: Shape])[] = [
  ["one entry", [7], [3], [1]],
  ["a part of each dimension", [5, 6, 7], [1, 2, 3], [3, 2, 4]],
  ["whole rows", [9, 8], [4, 0], [3, 8]],
  ["whole rows of odd width", [9, 7], [4, 0], [3, 7]],
  ["columns", [9, 8], [0, 5], [9, 2]],
  ["a position of a cache", [2, 3, 11, 8], [0, 0, 6, 0], [2, 3, 1, 8]],
  ["starts behind the end", [5, 6], [4, 2 ** 31 - 1], [3, 4]],
  ["starts before the beginning", [5, 6], [-1, -(2 ** 31)], [3, 4]],
  ["a start outside of a dimension that is whole", [5, 6], [1, 3], [2, 6]],
  ["all of it", [4, 5], [2, -2], [4, 5]],
  ["nothing", [4, 5], [9, 1], [0, 2]],
  ["of nothing", [0, 5], [0, 1], [0, 2]],
  ["a scalar", [], [], []],
  ["beyond a workgroup", [3, 40, 33], [1, 7, 2], [2, 30, 29]],
];

const storage: readonly (readonly [name: string, shape: Shape, starts: readonly number[], sizes: Shape])[] = [
  ["parts", [3, 7, 5], [1, 3, 2], [2, 3, 3]],
  ["rows of 3", [11, 3], [5, 0], [5, 3]],
  ["rows of 2", [3, 9, 2], [1, 4, 0], [2, 3, 2]],
  ["rows of 16", [13, 16], [6, 0], [4, 16]],
];

export const dynamicSliceCases: readonly ConformanceCase[] = [
  ...windows.flatMap(([name, shape, begin, sizes]): ConformanceCase[] => [
    {
      op: "dynamic-slice",
      name,
      fn: (x, at) => dynamicSlice(x!, at!, sizes),
      inputs: [normalArray(shape), starts(...begin)],
      gradient: [0],
      tolerance: exact,
    },
    {
      op: "dynamic-update-slice",
      name,
      fn: (x, update, at) => dynamicUpdateSlice(x!, update!, at!),
      inputs: [normalArray(shape), normalArray(sizes, 2), starts(...begin)],
      gradient: [0, 1],
      tolerance: exact,
    },
  ]),
  ...dtypes.flatMap((dtype) =>
    storage.flatMap(([name, shape, begin, sizes]): ConformanceCase[] => [
      {
        op: "dynamic-slice",
        name: `${name}, ${dtype}`,
        fn: (x, at) => dynamicSlice(x!, at!, sizes),
        inputs: [normalArray(shape, 1, dtype), starts(...begin)],
        tolerance: exact,
      },
      {
        op: "dynamic-update-slice",
        name: `${name}, ${dtype}`,
        fn: (x, update, at) => dynamicUpdateSlice(x!, update!, at!),
        inputs: [normalArray(shape, 1, dtype), normalArray(sizes, 2, dtype), starts(...begin)],
        tolerance: exact,
      },
    ]),
  ),
  {
    op: "dynamic-slice",
    name: "at what was computed, from what was computed",
    fn: (x, at) => dynamicSlice(multiply(x!, 2), [add(dynamicSlice(at!, [1], [1]), 1), 2], [2, 3]),
    inputs: [normalArray([6, 7]), starts(9, 2, 9)],
    gradient: [0],
    tolerance: exact,
  },
  {
    op: "dynamic-update-slice",
    name: "in place of what was computed, twice",
    fn: (x, update, at) =>
      dynamicUpdateSlice(dynamicUpdateSlice(multiply(x!, 2), update!, at!), multiply(update!, 2), [0, 3]),
    inputs: [normalArray([6, 7]), normalArray([2, 3], 2), starts(1, 2)],
    gradient: [0, 1],
    tolerance: exact,
  },
  {
    op: "dynamic-update-slice",
    name: "what is updated lives on",
    fn: (x, update, at) => {
      const base = multiply(x!, 2);
      return [dynamicUpdateSlice(base, update!, at!), multiply(base, 2)];
    },
    inputs: [normalArray([6, 7]), normalArray([2, 3], 2), starts(3, 2)],
    gradient: [0, 1],
    tolerance: exact,
  },
];
