import {
  batchNorm,
  batchNormInference,
  crossEntropy,
  crossEntropyPerRow,
  layerNorm,
  logSoftmax,
  NdArray,
  ones,
  rmsNorm,
  type Shape,
  softmax,
  type Tensor,
  vjp,
  zeros,
} from "@skein/tensor-core";
import { emit, emitOne } from "@skein/tensor-core/backend";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

/**
 * Returns standard normal values with every seventh entry multiplied by 20, so that the softmax of a row is not flat.
 */
const outliers = (shape: Shape, seed = 1): NdArray =>
  NdArray.from(
    normalArray(shape, seed)
      .toNumbers()
      .map((value, i) => (i % 7 === 3 ? value * 20 : value)),
    shape,
  );

const rowShapes: readonly (readonly [name: string, shape: Shape])[] = [
  ["one entry", [1, 1]],
  ["rows of one", [5, 1]],
  ["rows of three", [4, 3]],
  ["ten classes", [6, 10]],
  ["whole vectors", [3, 32]],
  ["one more than vectors", [3, 33]],
  ["many rows", [150, 7]],
  ["three dimensions", [2, 3, 19]],
  ["a vector", [21]],
  ["no rows", [0, 5]],
];

const long: Shape = [3, 2051];

const softmaxRows = (op: string, fn: typeof softmax): ConformanceCase[] => [
  ...rowShapes.map(
    ([name, shape]): ConformanceCase => ({ op, name, fn: (x) => fn(x!), inputs: [outliers(shape)], gradient: [0] }),
  ),
  { op, name: "long rows", fn: (x) => fn(x!), inputs: [outliers(long)] },
  { op, name: "first dimension", fn: (x) => fn(x!, { dim: 0 }), inputs: [outliers([5, 3, 2])], gradient: [0] },
  { op, name: "middle dimension", fn: (x) => fn(x!, { dim: 1 }), inputs: [outliers([2, 9, 3])], gradient: [0] },
  { op, name: "far from zero", fn: (x) => fn(x!), inputs: [uniformArray([4, 13], 30_000, 30_020)] },
  {
    op,
    name: "masked entries",
    fn: (x) => fn(x!),
    inputs: [NdArray.from([1, -Infinity, 2, -Infinity, 0, -Infinity, -Infinity, 3, -Infinity, -Infinity], [2, 5])],
  },
  {
    op,
    name: "rows of −∞, +∞ and NaN",
    fn: (x) => fn(x!),
    inputs: [NdArray.from([-Infinity, -Infinity, -Infinity, 1, Infinity, 2, 1, NaN, 2], [3, 3])],
  },
  {
    op,
    name: "spread wider than exp reaches",
    fn: (x) => fn(x!),
    inputs: [NdArray.from([0, -50, -87, -88, -100, -104, -200, -1e30, 0.5], [1, 9])],
  },
];

const backwardRows = (op: string): ConformanceCase[] =>
  rowShapes.map(([name, shape]) => ({
    op,
    name,
    fn: (y, g) => emitOne(op, [y!, g!]),
    inputs: [uniformArray(shape, -1, 0.5), normalArray(shape, 2)],
    gradient: [0, 1],
  }));

const labels = (rows: number, classes: number): NdArray => uniformArray([rows], 0, classes, 3, "i32");

const crossEntropyRows: readonly ConformanceCase[] = [
  ...(
    [
      [1, 1],
      [5, 10],
      [7, 3],
      [3, 33],
      [0, 4],
      [2, 1027],
    ] as const
  ).map(
    ([rows, classes]): ConformanceCase => ({
      op: "cross-entropy",
      name: `${rows} rows, ${classes} classes`,
      fn: (x, y) => crossEntropyPerRow(x!, y!),
      inputs: [outliers([rows, classes]), labels(rows, classes)],
      ...(classes < 100 ? { gradient: [0] } : {}),
    }),
  ),
  {
    op: "cross-entropy",
    name: "mean over positions",
    fn: (x, y) => crossEntropy(x!, y!),
    inputs: [outliers([2, 3, 17]), uniformArray([2, 3], 0, 17, 3, "i32")],
    gradient: [0],
  },
  {
    op: "cross-entropy",
    name: "labels outside",
    fn: (x, y) => crossEntropyPerRow(x!, y!),
    inputs: [normalArray([4, 5]), NdArray.from([0, -1, 5, 4], [4], "i32")],
  },
  {
    op: "cross-entropy",
    name: "far from zero",
    fn: (x, y) => crossEntropyPerRow(x!, y!),
    inputs: [uniformArray([4, 9], -30_020, -30_000), labels(4, 9)],
  },
  // The gradient at the label of a confident row is softmax − 1 ≈ −3.4e-4. Adding a large maximum to the logarithm of
  // the sum of exponentials must not lose these digits.
  {
    op: "cross-entropy",
    name: "sure of the label, ever further from zero",
    fn: (x, y) => crossEntropyPerRow(x!, y!),
    inputs: [
      NdArray.from(
        [0, 100, -1000, 10_000].flatMap((offset) => [offset + 8, offset, offset - 4]),
        [4, 3],
      ),
      NdArray.zeros("i32", [4]),
    ],
    gradient: [0],
    tolerance: { absolute: 1.5e-7, relative: 1e-6 },
  },
  {
    op: "cross-entropy-backward",
    name: "labels outside",
    fn: (x, y, maxima, totals, g) => emitOne("cross-entropy-backward", [x!, y!, maxima!, totals!, g!]),
    inputs: [
      normalArray([5, 9]),
      NdArray.from([0, -1, 9, 8, 3], [5], "i32"),
      uniformArray([5], 2, 4),
      uniformArray([5], 1, 9, 4),
      normalArray([5], 2),
    ],
  },
];

const perColumn = (shape: Shape): NdArray[] => [
  uniformArray(shape.slice(-1), 0.5, 1.5, 7),
  normalArray(shape.slice(-1), 8),
];

// Tolerance for sums in blocks of f32 partial sums, compared with f64.
const normTolerance = { absolute: 3e-5, relative: 3e-5 };

const normRows: readonly ConformanceCase[] = rowShapes.flatMap(([name, shape]): ConformanceCase[] => [
  {
    op: "layer-norm",
    name,
    fn: (x, gamma, beta) => layerNorm(x!, gamma!, beta!),
    inputs: [outliers(shape), ...perColumn(shape)],
    gradient: [0, 1, 2],
    tolerance: normTolerance,
  },
  {
    op: "rms-norm",
    name,
    fn: (x, gamma) => rmsNorm(x!, gamma!),
    inputs: [outliers(shape), perColumn(shape)[0]!],
    gradient: [0, 1],
    tolerance: normTolerance,
  },
]);

const batchShapes: readonly (readonly [name: string, shape: Shape])[] = [
  ["one channel", [5, 1]],
  ["odd channels", [6, 7]],
  ["image", [2, 3, 5, 16]],
  ["image, odd channels", [2, 4, 3, 19]],
  ["many rows", [300, 5]],
];

const batchNormRows: readonly ConformanceCase[] = batchShapes.flatMap(([name, shape]): ConformanceCase[] => [
  {
    op: "batch-norm",
    name,
    fn: (x, gamma, beta) => batchNorm(x!, gamma!, beta!).y,
    inputs: [outliers(shape), ...perColumn(shape)],
    gradient: [0, 1, 2],
    tolerance: normTolerance,
  },
  {
    op: "batch-norm",
    name: `${name}, statistics`,
    fn: (x, gamma, beta) => {
      const { y, mean, variance } = batchNorm(x!, gamma!, beta!);
      return [y, mean, variance];
    },
    inputs: [outliers(shape), ...perColumn(shape)],
    tolerance: normTolerance,
  },
]);

const allOutputs =
  (op: string, params = {}): ConformanceCase["fn"] =>
  (...inputs) =>
    emit(op, inputs, params);

export const normalisationCases: readonly ConformanceCase[] = [
  ...softmaxRows("softmax", softmax),
  ...softmaxRows("log-softmax", logSoftmax),
  ...backwardRows("softmax-backward"),
  ...backwardRows("log-softmax-backward"),
  ...crossEntropyRows,
  ...normRows,
  ...batchNormRows,
  {
    op: "layer-norm",
    name: "far from zero",
    fn: (x, gamma, beta) => layerNorm(x!, gamma!, beta!),
    inputs: [uniformArray([4, 65], 1000, 1002), ...perColumn([65])],
    tolerance: { absolute: 1e-3, relative: 1e-3 },
  },
  {
    op: "layer-norm",
    name: "far from zero, to the digits of rows at zero",
    fn: (x) => layerNorm(x!, ones([16]), zeros([16])),
    inputs: [
      NdArray.from(
        normalArray([40, 16], 9)
          .toNumbers()
          .map((value) => Math.fround(1000 + value)),
        [40, 16],
      ),
    ],
    tolerance: { absolute: 5e-6, relative: 5e-6 },
  },
  {
    op: "layer-norm",
    name: "long rows far from zero, to the digits of rows at zero",
    fn: (x) => layerNorm(x!, ones([777]), zeros([777])),
    inputs: [
      NdArray.from(
        normalArray([5, 777], 9)
          .toNumbers()
          .map((value) => Math.fround(1000 + value)),
        [5, 777],
      ),
    ],
    tolerance: { absolute: 5e-6, relative: 5e-6 },
  },
  // With entries at 10 000 ± 1, f32 rounds the mean by up to 5e-4 standard deviations. The gradient must not contain
  // this error.
  ...[64, 65, 777, 4096, 9001].map(
    (columns): ConformanceCase => ({
      op: "layer-norm-backward",
      name: `rows of ${columns} far from zero, to the digits of rows at zero`,
      fn: (x, gamma, beta, g) =>
        vjp((all: readonly Tensor[]) => layerNorm(all[0]!, all[1]!, all[2]!), [x!, gamma!, beta!]).pullback(g!),
      inputs: [
        NdArray.from(
          normalArray([6, columns], 9)
            .toNumbers()
            .map((value, i) => Math.fround((i < 2 * columns ? 100 : -10_000) + value)),
          [6, columns],
        ),
        ...perColumn([columns]),
        normalArray([6, columns], 2),
      ],
      tolerance: { absolute: 1e-5, relative: 1e-5 },
    }),
  ),
  {
    op: "layer-norm",
    name: "constant rows, ε alone",
    fn: (x, gamma, beta) => layerNorm(x!, gamma!, beta!, 1e-2),
    inputs: [NdArray.from(new Array(24).fill(3), [3, 8]), ...perColumn([8])],
  },
  {
    op: "layer-norm",
    name: "mean and rstd of rows",
    fn: allOutputs("layer-norm", { epsilon: 1e-3 }),
    inputs: [outliers([9, 21]), ...perColumn([21])],
    tolerance: normTolerance,
  },
  {
    op: "rms-norm",
    name: "rstd of rows",
    fn: allOutputs("rms-norm", { epsilon: 1e-3 }),
    inputs: [outliers([9, 21]), perColumn([21])[0]!],
    tolerance: normTolerance,
  },
  {
    op: "layer-norm-backward",
    name: "given statistics",
    fn: allOutputs("layer-norm-backward"),
    inputs: [
      normalArray([37, 11]),
      uniformArray([11], 0.5, 1.5),
      normalArray([37], 2),
      uniformArray([37], 0.5, 2),
      normalArray([37, 11], 3),
    ],
    tolerance: normTolerance,
  },
  {
    op: "rms-norm-backward",
    name: "given statistics",
    fn: allOutputs("rms-norm-backward"),
    inputs: [normalArray([37, 11]), uniformArray([11], 0.5, 1.5), uniformArray([37], 0.5, 2), normalArray([37, 11], 3)],
    tolerance: normTolerance,
  },
  {
    op: "batch-norm-backward",
    name: "given statistics",
    fn: allOutputs("batch-norm-backward", { epsilon: 1e-3 }),
    inputs: [
      normalArray([37, 11]),
      uniformArray([11], 0.5, 1.5),
      normalArray([11], 2),
      uniformArray([11], 0.5, 2),
      normalArray([37, 11], 3),
    ],
    tolerance: normTolerance,
  },
  {
    op: "batch-norm",
    name: "inference",
    fn: (x, gamma, beta, mean, variance) => batchNormInference(x!, gamma!, beta!, mean!, variance!),
    inputs: [normalArray([5, 9]), ...perColumn([9]), normalArray([9], 4), uniformArray([9], 0.5, 2)],
    gradient: [0, 1, 2, 3, 4],
  },
  {
    op: "batch-norm",
    name: "values whose squares overflow, all alike",
    fn: (x, gamma, beta) => {
      const { y, mean, variance } = batchNorm(x!, gamma!, beta!);
      return [y, mean, variance];
    },
    inputs: [NdArray.from(new Array(20).fill(1e30), [4, 5]), ...perColumn([5])],
  },
  {
    op: "batch-norm",
    name: "mean far from zero",
    fn: (x, gamma, beta) => batchNorm(x!, gamma!, beta!).y,
    inputs: [uniformArray([2000, 6], 1000, 1002), ...perColumn([6])],
    tolerance: { absolute: 1e-3, relative: 1e-3 },
  },
];
