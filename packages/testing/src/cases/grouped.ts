import { groupedMatmul, NdArray } from "@skein/tensor-core";
import { emit } from "@skein/tensor-core/backend";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray } from "../seeded.ts";

const integers = (...values: number[]): NdArray => NdArray.from(values, [values.length], "i32");

const groupings: readonly (readonly [
  name: string,
  rows: number,
  inner: number,
  columns: number,
  counts: readonly number[],
])[] = [
  ["one row", 1, 1, 1, [1]],
  ["odd sizes", 11, 3, 5, [4, 0, 7]],
  ["sizes in fours", 24, 8, 4, [8, 4, 12]],
  ["rows that belong to no group", 13, 4, 6, [3, 2]],
  ["one group has all, others none", 9, 5, 7, [0, 9, 0, 0]],
  ["no group has a row", 6, 4, 3, [0, 0]],
  ["more asked for than there are", 10, 4, 3, [4, 8, 3]],
  ["negative counts", 10, 4, 3, [-5, 4, -(2 ** 31), 5]],
  ["the greatest counts", 10, 4, 3, [2, 2 ** 31 - 1, 2 ** 31 - 1]],
  ["no rows", 0, 4, 3, [2, 1]],
  ["rows without width", 6, 0, 3, [2, 4]],
  ["no columns", 6, 4, 0, [2, 4]],
  ["no groups", 6, 4, 3, []],
  ["many small groups", 36, 4, 5, Array.from({ length: 17 }, (_, i) => i % 5)],
];

const large: readonly (readonly [
  name: string,
  rows: number,
  inner: number,
  columns: number,
  counts: readonly number[],
])[] = [
  ["over blocks of rows and columns", 301, 70, 135, [1, 130, 0, 66, 64, 33]],
  ["long sums", 700, 40, 24, [650, 20, 10]],
  ["a long inner dimension", 40, 1100, 9, [13, 27]],
];

const tolerance = { absolute: 1e-4, relative: 1e-5 };

const rowsOf = (
  [name, rows, inner, columns, counts]: (typeof groupings)[number],
  extra: Partial<ConformanceCase>,
): readonly ConformanceCase[] => {
  const groups = counts.length;
  return [
    {
      op: "grouped-matmul",
      name,
      fn: (x, w, c) => groupedMatmul(x!, w!, c!),
      inputs: [normalArray([rows, inner], 1), normalArray([groups, inner, columns], 2), integers(...counts)],
      ...extra,
    },
    {
      op: "grouped-matmul",
      name: `${name}, transposed`,
      fn: (x, w, c) => emit("grouped-matmul", [x!, w!, c!], { transposeW: true }),
      inputs: [normalArray([rows, inner], 1), normalArray([groups, columns, inner], 2), integers(...counts)],
      ...extra,
    },
    {
      op: "grouped-matmul-backward-weight",
      name,
      fn: (x, g, c) => emit("grouped-matmul-backward-weight", [x!, g!, c!], {}),
      inputs: [normalArray([rows, inner], 1), normalArray([rows, columns], 2), integers(...counts)],
      ...extra,
    },
  ];
};

/**
 * Returns the array with one row replaced by NaN. The NaN may affect only the result of that row and the weight
 * gradient of its group, so kernels must mask rows that a tile reads outside its group.
 */
const withNaN = (array: NdArray, row: number): NdArray => {
  const width = array.shape[1]!;
  return NdArray.from(
    array.toNumbers().map((value, i) => (Math.floor(i / width) === row ? NaN : value)),
    array.shape,
  );
};

export const groupedCases: readonly ConformanceCase[] = [
  ...groupings.flatMap((grouping) => rowsOf(grouping, { gradient: [0, 1] })),
  ...large.flatMap((grouping) => rowsOf(grouping, { tolerance })),
  {
    op: "grouped-matmul",
    name: "a row of NaN between groups",
    fn: (x, w, c) => groupedMatmul(x!, w!, c!),
    inputs: [withNaN(normalArray([12, 6], 1), 5), normalArray([3, 6, 5], 2), integers(5, 1, 4)],
  },
  {
    op: "grouped-matmul-backward-weight",
    name: "a row of NaN between groups",
    fn: (x, g, c) => emit("grouped-matmul-backward-weight", [x!, g!, c!], {}),
    inputs: [withNaN(normalArray([12, 6], 1), 5), withNaN(normalArray([12, 5], 2), 11), integers(5, 1, 4)],
  },
];
