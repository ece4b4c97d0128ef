import {
  batchNorm,
  crossEntropyPerRow,
  layerNorm,
  logSoftmax,
  mean,
  NdArray,
  rmsNorm,
  type Shape,
  softmax,
  sum,
  variance,
} from "@skein/tensor-core";
import { emit } from "@skein/tensor-core/backend";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

/** Row length: a vocabulary size that is not a multiple of any SIMD vector size. */
const width = 131_071;

/**
 * Returns an array in which all entries are `value`, except the first entry. Sums of many equal terms round in the same
 * direction, which gives an error of 1e-3 in an f32 running sum.
 */
const constantExceptFirst = (value: number, first: number, shape: Shape = [1, width]): NdArray => {
  const array = NdArray.zeros("f32", shape);
  const data = array.data as Float32Array;
  data.fill(value);
  data[0] = first;
  return array;
};

/** Returns two rows: one with equal entries except the first entry, and one with standard normal entries. */
const twoRows = (value: number, first: number): NdArray => {
  const array = NdArray.zeros("f32", [2, width]);
  (array.data as Float32Array).set(constantExceptFirst(value, first).data as Float32Array);
  (array.data as Float32Array).set(normalArray([width], 31).data as Float32Array, width);
  return array;
};

const ones = constantExceptFirst(1, 1, [width]);

/** Logits of an uncertain model: equal for all classes, except one that is larger. */
const logits = twoRows(-1.2, 0);

/**
 * Conformance cases of arrays with rows or columns as long as a vocabulary. The tolerance of sums is a few rounding
 * errors of the total. The error of a sequential f32 sum is 10 to 100 times larger.
 */
export const wideCases: readonly ConformanceCase[] = [
  {
    op: "softmax",
    name: "a vocabulary",
    fn: (x) => softmax(x!),
    inputs: [logits],
    tolerance: { absolute: 0, relative: 6e-6 },
  },
  {
    op: "log-softmax",
    name: "a vocabulary",
    fn: (x) => logSoftmax(x!),
    inputs: [logits],
    tolerance: { absolute: 4e-6, relative: 2e-7 },
  },
  {
    op: "cross-entropy",
    name: "a vocabulary",
    fn: (x, labels) => crossEntropyPerRow(x!, labels!),
    inputs: [logits, NdArray.from([0, width - 1], [2], "i32")],
    tolerance: { absolute: 4e-6, relative: 2e-7 },
  },
  {
    op: "softmax-backward",
    name: "a vocabulary",
    fn: (...inputs) => emit("softmax-backward", inputs),
    inputs: [constantExceptFirst(1 / width, 1 / width), constantExceptFirst(1.3, 2)],
    tolerance: { absolute: 6e-6 / width, relative: 1e-6 },
  },
  {
    op: "log-softmax-backward",
    name: "a vocabulary",
    fn: (...inputs) => emit("log-softmax-backward", inputs),
    inputs: [constantExceptFirst(-Math.log(width), -5), constantExceptFirst(0.3, 0.4)],
    tolerance: { absolute: 3e-6, relative: 3e-6 },
  },
  {
    op: "layer-norm",
    name: "wide rows",
    fn: (x, gamma, beta) => layerNorm(x!, gamma!, beta!),
    inputs: [twoRows(0.3, 300), ones, normalArray([width], 8)],
    tolerance: { absolute: 3e-6, relative: 3e-6 },
  },
  {
    op: "layer-norm-backward",
    name: "wide rows",
    fn: (...inputs) => emit("layer-norm-backward", inputs),
    inputs: [
      constantExceptFirst(0.3, 300),
      ones,
      NdArray.from([0.25]),
      NdArray.from([0.9]),
      constantExceptFirst(0.3, 5),
    ],
    tolerance: { absolute: 2e-6, relative: 1e-5 },
  },
  {
    op: "rms-norm",
    name: "wide rows",
    fn: (x, gamma) => rmsNorm(x!, gamma!),
    inputs: [twoRows(0.55, 3), ones],
    tolerance: { absolute: 0, relative: 3e-6 },
  },
  {
    op: "rms-norm-backward",
    name: "wide rows",
    fn: (...inputs) => emit("rms-norm-backward", inputs),
    inputs: [constantExceptFirst(0.55, 3), ones, NdArray.from([1.1]), constantExceptFirst(0.3, 5)],
    tolerance: { absolute: 2e-6, relative: 2e-6 },
  },
  {
    op: "layer-norm-backward",
    name: "many rows",
    fn: (...inputs) => emit("layer-norm-backward", inputs).slice(1),
    inputs: [
      constantExceptFirst(0.3, 3, [width, 1]),
      NdArray.from([1]),
      constantExceptFirst(0, 0, [width]),
      constantExceptFirst(1, 2, [width]),
      constantExceptFirst(0.7, 5, [width, 1]),
    ],
    tolerance: { absolute: 0, relative: 5e-6 },
  },
  {
    op: "batch-norm",
    name: "many rows",
    fn: (x, gamma, beta) => {
      const { y, mean: average, variance: spread } = batchNorm(x!, gamma!, beta!);
      return [y, average, spread];
    },
    inputs: [uniformArray([width, 2], 1, 2, 33), NdArray.from([1, 0.5]), NdArray.from([0, 0.5])],
    tolerance: { absolute: 2e-6, relative: 2e-6 },
  },
  {
    op: "batch-norm-backward",
    name: "many rows",
    fn: (...inputs) => emit("batch-norm-backward", inputs, { epsilon: 1e-3 }),
    inputs: [
      constantExceptFirst(0.3, 3, [width, 1]),
      NdArray.from([1]),
      NdArray.from([0.1]),
      NdArray.from([1.5]),
      constantExceptFirst(0.7, 5, [width, 1]),
    ],
    tolerance: { absolute: 2e-6, relative: 5e-6 },
  },
  {
    op: "sum",
    name: "sums, means and variances of wide rows",
    fn: (x) => [sum(x!, { dims: -1 }), mean(x!, { dims: -1 }), variance(x!, { dims: -1 })],
    inputs: [twoRows(0.3, 300)],
    tolerance: { absolute: 2e-5, relative: 2e-6 },
  },
];
