import {
  broadcastTo,
  concat,
  type DType,
  dtypes,
  pad,
  padInterior,
  reshape,
  type Shape,
  slice,
  type Tensor,
  transpose,
} from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray } from "../seeded.ts";

/**
 * Returns one conformance case per dtype for a function of one tensor that moves data. Moving data preserves every bit,
 * so results must be equal to the reference.
 */
const perDtype = (
  op: string,
  name: string,
  shape: Shape,
  fn: ConformanceCase["fn"],
  { only = dtypes, isDifferentiated = true }: { only?: readonly DType[]; isDifferentiated?: boolean } = {},
): ConformanceCase[] =>
  only.map((dtype) => ({
    op,
    name: `${name}, ${dtype}`,
    fn,
    inputs: [normalArray(shape, 1, dtype)],
    ...(dtype === "f32" && isDifferentiated && { gradient: [0] }),
    tolerance: { absolute: 0, relative: 0 },
  }));

const broadcasts: readonly (readonly [name: string, from: Shape, to: Shape])[] = [
  ["scalar", [], [3, 5]],
  ["scalar to none", [], [0, 5]],
  ["row", [7], [3, 7]],
  ["row of one", [1], [3, 7]],
  ["column", [5, 1], [5, 9]],
  ["column of one row", [1, 1], [1, 1]],
  ["both ends", [1, 4, 1], [3, 4, 5]],
  ["middle", [2, 1, 3], [2, 5, 3]],
  ["new dimensions around", [3, 1, 2, 1], [2, 3, 4, 2, 5]],
  ["bias over an image", [16], [2, 3, 3, 16]],
  ["nothing", [0], [4, 0]],
];

const permutations: readonly (readonly [name: string, shape: Shape, permutation: readonly number[]])[] = [
  ["matrix, whole tiles", [16, 8], [1, 0]],
  ["matrix, odd sizes", [37, 21], [1, 0]],
  ["matrix, beyond one block", [70, 130], [1, 0]],
  ["matrix, beyond one block of whole words", [68, 132], [1, 0]],
  ["one row", [1, 9], [1, 0]],
  ["one column", [9, 1], [1, 0]],
  ["no rows", [0, 5], [1, 0]],
  ["identity", [3, 4], [0, 1]],
  ["batch of matrices", [3, 5, 7], [0, 2, 1]],
  ["heads before positions", [2, 5, 3, 8], [0, 2, 1, 3]],
  ["rows of one", [2, 5, 3, 1], [0, 2, 1, 3]],
  ["channels first", [2, 4, 5, 3], [0, 3, 1, 2]],
  ["channels last", [2, 3, 4, 5], [0, 2, 3, 1]],
  ["reversed", [2, 3, 4, 5], [3, 2, 1, 0]],
  ["rotated, five dimensions", [2, 3, 2, 3, 2], [4, 0, 1, 2, 3]],
  ["last two kept", [3, 5, 2, 4], [1, 0, 2, 3]],
];

const slices: readonly (readonly [
  name: string,
  shape: Shape,
  starts: readonly number[],
  ends: readonly number[],
  strides?: readonly number[],
])[] = [
  ["rows", [9, 5], [2, 0], [7, 5]],
  ["columns", [9, 5], [0, 1], [9, 4]],
  ["corner", [4, 6, 5], [1, 2, 3], [3, 5, 5]],
  ["one element", [4, 6], [3, 5], [4, 6]],
  ["nothing", [4, 6], [2, 3], [2, 6]],
  ["every third column", [5, 11], [0, 1], [5, 11], [1, 3]],
  ["every second row", [7, 4], [1, 0], [7, 4], [2, 1]],
  ["steps in all dimensions", [5, 7, 9], [1, 0, 2], [5, 7, 9], [2, 3, 4]],
  ["step beyond the end", [6], [2], [6], [9]],
];

const pads: readonly (readonly [
  name: string,
  shape: Shape,
  widths: readonly (readonly [number, number])[],
  value: number,
])[] = [
  [
    "around",
    [3, 5],
    [
      [1, 2],
      [2, 1],
    ],
    0,
  ],
  [
    "rows only",
    [3, 5],
    [
      [2, 0],
      [0, 0],
    ],
    3,
  ],
  [
    "image border",
    [2, 4, 5, 3],
    [
      [0, 0],
      [1, 1],
      [1, 1],
      [0, 0],
    ],
    0,
  ],
  [
    "an empty one",
    [0, 4],
    [
      [1, 2],
      [0, 0],
    ],
    1,
  ],
  ["scalar", [], [], 5],
];

const paddingValues: readonly ConformanceCase[] = [-Infinity, 1.5].map((value) => ({
  op: "pad",
  name: `value ${value}`,
  fn: (x) => pad(x!, [[1, 1]], value),
  inputs: [normalArray([5])],
  tolerance: { absolute: 0, relative: 0 },
}));

const interior: readonly (readonly [
  name: string,
  shape: Shape,
  low: readonly number[],
  high: readonly number[],
  gaps: readonly number[],
])[] = [
  ["between columns", [3, 4], [0, 1], [0, 2], [0, 2]],
  ["between all", [3, 4, 2], [1, 0, 2], [0, 1, 0], [1, 2, 3]],
  ["between one", [1], [1], [1], [5]],
  ["between none", [0, 3], [1, 0], [1, 0], [2, 1]],
];

const concats: readonly (readonly [name: string, shapes: readonly Shape[], dim: number])[] = [
  [
    "rows",
    [
      [2, 5],
      [3, 5],
    ],
    0,
  ],
  [
    "columns",
    [
      [4, 1],
      [4, 7],
      [4, 3],
    ],
    1,
  ],
  [
    "middle",
    [
      [2, 3, 5],
      [2, 4, 5],
    ],
    1,
  ],
  [
    "with an empty one",
    [
      [2, 3],
      [2, 0],
      [2, 2],
    ],
    -1,
  ],
  ["vectors", [[1], [5], [2]], 0],
];

/**
 * Concatenates the columns of a matrix to a vector. The transposition needs a kernel, so the vector is not a view of
 * the matrix.
 */
const columns = (x: Tensor): Tensor => reshape(transpose(x), [-1]);

const reshapes: readonly (readonly [name: string, from: Shape, to: Shape])[] = [
  ["merge", [2, 3, 4], [6, -1]],
  ["to scalar", [1, 1], []],
  ["empty", [0, 3], [3, 0, 2]],
];

export const movementCases: readonly ConformanceCase[] = [
  ...broadcasts.flatMap(([name, from, to]) => perDtype("broadcast-to", name, from, (x) => broadcastTo(x!, to))),
  ...permutations.flatMap(([name, shape, permutation]) =>
    perDtype("transpose", name, shape, (x) => transpose(x!, permutation), {
      isDifferentiated: shape.length > 2 || shape[0]! * shape[1]! < 200,
    }),
  ),
  ...slices.flatMap(([name, shape, starts, ends, strides]) =>
    perDtype("slice", name, shape, (x) => slice(x!, starts, ends, strides)),
  ),
  ...pads.flatMap(([name, shape, widths, value]) => [
    ...perDtype("pad", name, shape, (x) => pad(x!, widths, value === 0 ? 0 : 1), { only: ["bool"] }),
    ...perDtype("pad", name, shape, (x) => pad(x!, widths, value), {
      only: ["f32", "f16", "bf16", "i32", "u32", "u8"],
    }),
  ]),
  ...paddingValues,
  ...interior.flatMap(([name, shape, low, high, gaps]) =>
    perDtype("pad", name, shape, (x) => padInterior(x!, low, high, gaps)),
  ),
  ...concats.map(
    ([name, shapes, dim]): ConformanceCase => ({
      op: "concat",
      name,
      fn: (...tensors) => concat(tensors, { dim }),
      inputs: shapes.map((shape, i) => normalArray(shape, i + 1)),
      gradient: shapes.map((_, i) => i),
      tolerance: { absolute: 0, relative: 0 },
    }),
  ),
  ...dtypes.map(
    (dtype): ConformanceCase => ({
      op: "concat",
      name: `rows, ${dtype}`,
      fn: (a, b) => concat([a!, b!, a!], { dim: 1 }),
      inputs: [normalArray([3, 5], 1, dtype), normalArray([3, 2], 2, dtype)],
    }),
  ),
  // Kernels may write computed operands directly into the result. Operands after an odd length begin inside a 32-bit
  // word of the result.
  ...dtypes.map(
    (dtype): ConformanceCase => ({
      op: "concat",
      name: `computed, of odd lengths, ${dtype}`,
      fn: (a, b, c) => concat([columns(a!), columns(b!), reshape(c!, [-1]), columns(c!)]),
      inputs: [normalArray([16, 32], 1, dtype), normalArray([3, 3], 2, dtype), normalArray([5, 3], 3, dtype)],
      tolerance: { absolute: 0, relative: 0 },
    }),
  ),
  ...reshapes.flatMap(([name, from, to]) => perDtype("reshape", name, from, (x) => reshape(x!, to))),
];
