import { absolute, full, histogram, multiply, NdArray, reduceMax, type Shape, sum, cast } from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

const f32 = Math.fround;
const scalar = (value: number): NdArray => NdArray.scalar(value);

const row = (name: string, x: NdArray, low: number, high: number, bins: number): ConformanceCase => ({
  op: "histogram",
  name,
  fn: (values, from, to) => histogram(values!, from!, to!, bins),
  inputs: [x, scalar(low), scalar(high)],
});

const shapes: readonly Shape[] = [[0], [1], [3], [4], [], [31], [7, 67], [100_003]];

/**
 * Returns values on and next to the edges of `bins` bins over [low, high], where a rounding error moves a value to
 * another bin.
 */
const edges = (low: number, high: number, bins: number): NdArray => {
  const word = new Float32Array(1);
  const bits = new Int32Array(word.buffer);
  const values = Array.from({ length: bins + 1 }, (_, i) => {
    word[0] = low + (i * (high - low)) / bins;
    return [-1, 0, 1].map((step) => {
      bits[0]! += step;
      const value = word[0]!;
      bits[0]! -= step;
      return value;
    });
  });
  return NdArray.from(values.flat());
};

/** Returns the values three times, so that they fill more than one SIMD vector. */
const thrice = (...values: number[]): NdArray => NdArray.from([...values, ...values, ...values]);

/** Conformance cases of the histogram. Counts are integers, so all results are exact. */
export const histogramCases: readonly ConformanceCase[] = [
  ...shapes.map((shape) => row(`[${shape.join()}]`, normalArray(shape, 3), -1, 2, 10)),
  ...[1, 2, 3, 255, 256, 257, 4096, 4097, 65_536].map((bins) =>
    row(`${bins} bins`, normalArray([20_011], 5), -2.5, 3.1, bins),
  ),
  row("edges of 10 bins", edges(0, 1, 10), 0, 1, 10),
  row("edges of 1000 bins", edges(-0.3, f32(0.7), 1000), -0.3, f32(0.7), 1000),
  row("edges of 4096 bins", edges(0, Math.PI, 4096), 0, Math.PI, 4096),
  row("edges of a range far from 0", edges(1e6, 1e6 + 3, 7), 1e6, 1e6 + 3, 7),
  row("edges of small numbers", edges(1e-30, 7e-30, 60), 1e-30, 7e-30, 60),
  row("edges of great numbers", edges(-4e37, 4e37, 33), -4e37, 4e37, 33),
  row("values outside, infinite, not a number", thrice(NaN, Infinity, -Infinity, -1, 0, 0.5, 1, 1.0001, -0), 0, 1, 4),
  row("low = high", thrice(1, 1, 2, 0, NaN, 1), 1, 1, 4),
  row("low = high = 0", thrice(0, -0, 1, -1, 0), 0, -0, 3),
  row("low above high", NdArray.from([0, 1, 2]), 2, 0, 3),
  row("low not a number", NdArray.from([0, 1, 2]), NaN, 2, 3),
  row("high infinite", NdArray.from([0, 1, 2]), 0, Infinity, 3),
  row("too wide", NdArray.from([0, 1, 2]), -2e38, 2e38, 3),
  row("subnormal values", thrice(2 ** -140, -(2 ** -127), 2 ** -126, 0, -(2 ** -126), 1), 0, 1, 4),
  row("subnormal values below zero", thrice(2 ** -140, -(2 ** -127), 2 ** -126, 0, -1, -(2 ** -126)), -1, -0, 4),
  row(
    "subnormal values next to small ends",
    thrice(2 ** -140, -(2 ** -127), 2 ** -126, 2 ** -125, -(2 ** -125)),
    -(2 ** -125),
    1,
    100,
  ),
  row("subnormal range", thrice(2 ** -140, 0, 1, 2 ** -139), 0, 2 ** -139, 4),
  row(
    "bins just above the smallest number",
    thrice(2 ** -119, 2 ** -119 + 0.9 * 2 ** -126, 1.5 * 2 ** -119),
    2 ** -119,
    1.5 * 2 ** -119,
    100,
  ),
  row(
    "subnormal differences",
    thrice(...[1, 1.25, 1.5, 1.75, 2].map((value) => value * 2 ** -125)),
    2 ** -125,
    2 ** -124,
    64,
  ),
  row(
    "bins narrower than the smallest number",
    thrice(...[1, 1.25, 1.5, 2].map((value) => value * 2 ** -126)),
    2 ** -126,
    2 ** -125,
    1000,
  ),
  row("all in one bin", NdArray.from(new Array<number>(5000).fill(0.3)), 0, 1, 512),
  row("range as wide as one bin", uniformArray([999], 0, 8, 3), 2, 6, 1),
  {
    op: "histogram",
    name: "of magnitudes, up to the greatest",
    fn: (x) => histogram(absolute(x!), full([], 0), reduceMax(absolute(x!)), 300),
    inputs: [normalArray([40_000], 8)],
  },
  {
    op: "histogram",
    name: "gradient beside it",
    fn: (x) => multiply(x!, cast(sum(histogram(x!, full([], -9), full([], 9), 4)), "f32")),
    inputs: [normalArray([30], 8)],
    gradient: [0],
  },
];
