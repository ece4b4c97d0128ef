import { attention, emit, rotary, type Shape } from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

const shapes: readonly (readonly [name: string, batch: number, heads: number, queries: number, keys: number, width: number])[] = [
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

const large: readonly (readonly [name: string, batch: number, heads: number, queries: number, keys: number, width: number])[] = [
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
    // exp of a score near 100 turns the score's own rounding, 100 · 6e-8, into a relative error of the weights.
    tolerance: { absolute: 1e-4, relative: 1e-4 },
  },
  {
    op: "attention-backward",
    name: `given sums${causal ? ", causal" : ""}`,
    fn: (...inputs) => emit("attention-backward", inputs, { causal, scale: 0.5 }),
    inputs: [...operands(2, 2, 17, 17, 7), normalArray([2, 2, 17, 7], 4), uniformArray([2, 2, 17], 2, 3), normalArray([2, 2, 17, 7], 5)],
    tolerance: { absolute: 1e-4, relative: 1e-4 },
  },
]);

const rotaries: readonly (readonly [name: string, shape: Shape, base: number, offset: number])[] = [
  ["one pair", [1, 2], 10_000, 0],
  ["heads", [2, 3, 5, 8], 10_000, 0],
  ["odd half", [3, 6], 10_000, 7],
  ["far along", [2, 4, 20], 500_000, 4000],
  ["no positions", [2, 0, 4], 10_000, 0],
];

export const attentionCases: readonly ConformanceCase[] = [
  ...attentionRows,
  ...rotaries.map(
    ([name, shape, base, offset]): ConformanceCase => ({
      op: "rotary",
      name,
      fn: (x) => rotary(x!, base, offset),
      inputs: [normalArray(shape)],
      gradient: [0],
    }),
  ),
];
