import { attention, NdArray, rotary, type Shape } from "@skein/tensor-core";
import { emit } from "@skein/tensor-core/backend";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

const shapes: readonly (readonly [
  name: string,
  batch: number,
  heads: number,
  queries: number,
  keys: number,
  width: number,
])[] = [
  ["one of each", 1, 1, 1, 1, 1],
  ["odd sizes", 2, 1, 5, 5, 3],
  ["two heads", 1, 2, 7, 7, 8],
  ["beyond a tile", 1, 1, 37, 37, 5],
  ["more keys than queries", 1, 2, 3, 9, 4],
  ["one query at the end", 2, 1, 1, 11, 6],
  ["fewer keys than queries", 1, 1, 9, 4, 4],
  ["no queries", 1, 1, 0, 4, 4],
  ["no keys", 1, 1, 3, 0, 4],
  ["empty batch", 0, 2, 3, 3, 4],
];

const large: readonly (readonly [
  name: string,
  batch: number,
  heads: number,
  queries: number,
  keys: number,
  width: number,
])[] = [
  ["several tiles", 1, 2, 150, 150, 32],
  ["several tiles, odd", 1, 1, 131, 203, 19],
];

const operands = (batch: number, heads: number, queries: number, keys: number, width: number, factor = 1) => [
  uniformArray([batch, heads, queries, width], -factor, factor, 1),
  uniformArray([batch, heads, keys, width], -1, 1, 2),
  normalArray([batch, heads, keys, width], 3),
];

const attentionRows: readonly ConformanceCase[] = [false, true].flatMap((causal) => [
  ...shapes.map(
    ([name, ...sizes]): ConformanceCase => ({
      op: "attention",
      name: `${name}${causal ? ", causal" : ""}`,
      fn: (q, k, v) => attention(q!, k!, v!, { causal }),
      inputs: operands(...sizes),
      gradient: [0, 1, 2],
    }),
  ),
  ...large.map(
    ([name, ...sizes]): ConformanceCase => ({
      op: "attention",
      name: `${name}${causal ? ", causal" : ""}`,
      fn: (q, k, v) => attention(q!, k!, v!, { causal, scale: 0.3 }),
      inputs: operands(...sizes),
      gradient: [0, 1, 2],
    }),
  ),
  {
    op: "attention",
    name: `scores up to a hundred${causal ? ", causal" : ""}`,
    fn: (q, k, v) => emit("attention", [q!, k!, v!], { causal, scale: 1 }),
    inputs: operands(1, 2, 41, 41, 16, 20),
    // exp turns the rounding error of a score near 100, 100 · 6e-8, into a relative error of the weights.
    tolerance: { absolute: 1e-4, relative: 1e-4 },
  },
  {
    op: "attention-backward",
    name: `given sums${causal ? ", causal" : ""}`,
    fn: (...inputs) => emit("attention-backward", inputs, { causal, scale: 0.5 }),
    inputs: [
      ...operands(2, 2, 17, 17, 7),
      normalArray([2, 2, 17, 7], 4),
      uniformArray([2, 2, 17], 2, 3),
      normalArray([2, 2, 17, 7], 5),
    ],
    tolerance: { absolute: 1e-4, relative: 1e-4 },
  },
]);

/**
 * Attention cases with grouped heads, key lengths or query starts. Each entry has a name, the sizes [batch, heads, key
 * heads, queries, keys, width], the key lengths, and the query starts.
 */
const limited: readonly (readonly [
  name: string,
  sizes: readonly [batch: number, heads: number, keyHeads: number, queries: number, keys: number, width: number],
  lengths: readonly number[] | undefined,
  starts?: readonly number[],
])[] = [
  ["grouped heads", [2, 4, 2, 5, 7, 3], undefined],
  ["all heads share one", [1, 3, 1, 6, 6, 4], undefined],
  ["key lengths", [3, 2, 2, 5, 7, 4], [7, 3, 1]],
  ["key lengths, one without a key", [3, 1, 1, 4, 6, 5], [0, 6, 2]],
  ["key lengths out of range", [3, 1, 1, 4, 6, 4], [-3, 2 ** 31 - 1, -(2 ** 31)]],
  ["key lengths and grouped heads", [2, 4, 2, 3, 9, 4], [4, 8]],
  ["one query each, grouped heads", [3, 4, 1, 1, 11, 6], [11, 4, 0]],
  ["key lengths, no queries", [2, 2, 1, 0, 5, 4], [2, 5]],
  ["key lengths, no keys", [2, 2, 1, 3, 0, 4], [2, 5]],
];

const started: typeof limited = [
  ["query starts", [3, 2, 1, 4, 9, 4], undefined, [0, 5, 2]],
  ["queries behind a cache", [3, 2, 2, 3, 11, 5], [3, 7, 11], [0, 4, 8]],
  ["query starts out of range", [4, 1, 1, 3, 5, 4], [5, 5, 2, 5], [-1, -7, 2 ** 31 - 1, -(2 ** 31)]],
];

const largeLimited: typeof limited = [
  ["several tiles, grouped heads, key lengths", [2, 4, 2, 70, 150, 20], [149, 65]],
  ["several tiles, key lengths", [3, 1, 1, 131, 203, 19], [64, 0, 203], [-40, 5, 72]],
];

const integers = (values: readonly number[]): NdArray => NdArray.from(values, [values.length], "i32");

const limitedRow = (
  [name, [batch, heads, keyHeads, queries, keys, width], lengths, starts]: (typeof limited)[number],
  causal: boolean,
): ConformanceCase => ({
  op: "attention",
  name: `${name}${causal ? ", causal" : ""}`,
  fn: (q, k, v, ...limits) =>
    attention(q!, k!, v!, {
      causal,
      ...(lengths !== undefined && { keyLengths: limits[0]! }),
      ...(starts !== undefined && causal && { queryStarts: limits.at(-1)! }),
    }),
  inputs: [
    uniformArray([batch, heads, queries, width], -1, 1, 1),
    uniformArray([batch, keyHeads, keys, width], -1, 1, 2),
    normalArray([batch, keyHeads, keys, width], 3),
    ...(lengths === undefined ? [] : [integers(lengths)]),
    ...(starts === undefined || !causal ? [] : [integers(starts)]),
  ],
  gradient: [0, 1, 2],
});

/**
 * Sets all entries after the key length of each batch entry to NaN, like the unused part of a cache. An operator must
 * not even multiply these entries by 0.
 */
const behindLengths = (array: NdArray, lengths: readonly number[]): NdArray => {
  const [, heads, keys, width] = array.shape as [number, number, number, number];
  return NdArray.from(
    array
      .toNumbers()
      .map((value, i) =>
        Math.floor(i / width) % keys >= lengths[Math.floor(i / (heads * keys * width))]! ? NaN : value,
      ),
    array.shape,
  );
};

const unread = [70, 3];

const limitedRows: readonly ConformanceCase[] = [
  ...[false, true].flatMap((causal) => [...limited, ...largeLimited].map((row) => limitedRow(row, causal))),
  ...started.map((row) => limitedRow(row, true)),
  ...[false, true].map(
    (causal): ConformanceCase => ({
      op: "attention",
      name: `NaN behind the key lengths${causal ? ", causal" : ""}`,
      fn: (q, k, v, keyLengths) => attention(q!, k!, v!, { causal, keyLengths: keyLengths! }),
      inputs: [
        uniformArray([2, 2, 9, 4], -1, 1, 1),
        behindLengths(uniformArray([2, 1, 75, 4], -1, 1, 2), unread),
        behindLengths(normalArray([2, 1, 75, 4], 3), unread),
        integers(unread),
      ],
      gradient: [0, 1, 2],
    }),
  ),
];

const rotaries: readonly (readonly [name: string, shape: Shape, base: number, offset: number])[] = [
  ["one pair", [1, 2], 10_000, 0],
  ["heads", [2, 3, 5, 8], 10_000, 0],
  ["odd half", [3, 6], 10_000, 7],
  ["far along", [2, 4, 20], 500_000, 4000],
  ["no positions", [2, 0, 4], 10_000, 0],
];

export const attentionCases: readonly ConformanceCase[] = [
  ...attentionRows,
  ...limitedRows,
  ...rotaries.map(
    ([name, shape, base, offset]): ConformanceCase => ({
      op: "rotary",
      name,
      fn: (x) => rotary(x!, { base, offset }),
      inputs: [normalArray(shape)],
      gradient: [0],
    }),
  ),
];
