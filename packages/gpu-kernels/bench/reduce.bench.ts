// Measures reductions, scans, selections, counts and batch normalization, compared with a copy.
// Run: node bench/reduce.bench.ts [part of a name]
import {
  argmax,
  batchNorm,
  cumsum,
  full,
  histogram,
  NdArray,
  nonzero,
  reduceMax,
  type Shape,
  sum,
  topK,
} from "@skein/tensor-core";
import { emit } from "@skein/tensor-core/backend";
import { normalArray } from "@skein/testing";
import { benchKernels, type KernelRow } from "./kernel-bench.ts";

// A million normally distributed values, repeated with growing noise so that no two blocks have equal values.
const block = normalArray([1_000_000], 7).data;

const values = (shape: Shape): NdArray => {
  const count = shape.reduce((product, size) => product * size, 1);
  const data = new Float32Array(count);
  for (let i = 0; i < count; i++) data[i] = (block[i % block.length] as number) * (1 + i * 1e-9);
  return new NdArray("f32", shape, data);
};

const million = 1_000_000;

const reductions = (
  [
    ["sum of 10M", [10 * million], undefined],
    ["sum of rows [4096, 4096]", [4096, 4096], [1]],
    ["sum of rows [4096, 4095]", [4096, 4095], [1]],
    ["sum of columns [4096, 4096]", [4096, 4096], [0]],
    ["sum of short rows [262144, 64]", [262_144, 64], [1]],
    ["sum of few columns [2M, 8]", [2 * million, 8], [0]],
    ["sum of odd columns [1M, 19]", [million, 19], [0]],
  ] as const
).map(
  ([name, shape, dims]): KernelRow => ({
    name,
    fn: (x) => sum(x!, dims === undefined ? {} : { dims }),
    inputs: () => [values(shape)],
    flops: 0,
    bytes: 4 * shape.reduce((product: number, size) => product * size, 1),
    tolerance: 1e-2,
  }),
);

const extremes: KernelRow[] = [
  {
    name: "max of 10M",
    fn: (x) => reduceMax(x!),
    inputs: () => [values([10 * million])],
    flops: 0,
    bytes: 40 * million,
    tolerance: 0,
  },
  {
    name: "argmax of columns [4096, 4096]",
    fn: (x) => argmax(x!, { dim: 0 }),
    inputs: () => [values([4096, 4096])],
    flops: 0,
    bytes: 4 * 4096 ** 2,
    tolerance: 0,
  },
];

const scans = (
  [
    ["cumsum of 10M", [10 * million], 0],
    ["cumsum of rows [16384, 512]", [16_384, 512], 1],
    ["cumsum of columns [4096, 4096]", [4096, 4096], 0],
  ] as const
).map(
  ([name, shape, dim]): KernelRow => ({
    name,
    fn: (x) => cumsum(x!, { dim }),
    inputs: () => [values(shape)],
    flops: 0,
    bytes: 8 * shape.reduce((product: number, size) => product * size, 1),
    tolerance: 2e-2,
  }),
);

const selections = (
  [
    ["top-k 10M, 0.1 %", [10 * million], 10_000, false],
    ["top-k 10M, 0.1 %, sorted", [10 * million], 10_000, true],
    ["top-k 10M, 1 %", [10 * million], 100_000, false],
    ["top-k 1M, all, sorted", [million], million, true],
    ["top-k [512, 32000], 50, sorted", [512, 32_000], 50, true],
    ["top-k [4096, 64], 2, sorted", [4096, 64], 2, true],
    ["top-k [8192, 8], 2, sorted", [8192, 8], 2, true],
  ] as const
).map(
  ([name, shape, k, sorted]): KernelRow => ({
    name,
    fn: (x) => topK(x!, k, { sorted, by: "magnitude" }),
    inputs: () => [values(shape)],
    flops: 0,
    bytes: 4 * shape.reduce((product: number, size) => product * size, 1),
    tolerance: 0,
  }),
);

const trues = (count: number, every: number): NdArray =>
  new NdArray(
    "bool",
    [count],
    Uint8Array.from({ length: count }, (_, i) => (Math.imul(i, 0x9e3779b9) >>> 0 < 2 ** 32 / every ? 1 : 0)),
  );

const counts: KernelRow[] = [
  ...[100, 2].map(
    (every): KernelRow => ({
      name: `nonzero 32M, one in ${every}`,
      fn: (mask) => nonzero(mask!, Math.ceil((32.5 * million) / every)),
      inputs: () => [trues(32 * million, every)],
      flops: 0,
      bytes: 32 * million + (4 * 32 * million) / every,
      tolerance: 0,
    }),
  ),
  ...[16, 256, 4096, 65_536].map(
    (bins): KernelRow => ({
      name: `histogram 10M, ${bins} bins`,
      fn: (x) => histogram(x!, full([], -3), full([], 3), bins),
      inputs: () => [values([10 * million])],
      flops: 0,
      bytes: 40 * million,
      tolerance: 0,
    }),
  ),
];

const norms: KernelRow[] = [
  {
    name: "batch-norm [64, 56, 56, 64]",
    fn: (x, gamma, beta) => batchNorm(x!, gamma!, beta!).y,
    inputs: () => [values([64, 56, 56, 64]), normalArray([64], 1), normalArray([64], 2)],
    flops: 0,
    bytes: 3 * 4 * 64 * 56 * 56 * 64,
  },
  {
    name: "batch-norm backward [64, 56, 56, 64]",
    fn: (x, gamma, mean, variance, g) =>
      emit("batch-norm-backward", [x!, gamma!, mean!, variance!, g!], { epsilon: 1e-3 })[0]!,
    inputs: () => [
      values([64, 56, 56, 64]),
      normalArray([64], 1),
      NdArray.zeros("f32", [64]),
      NdArray.from(new Array(64).fill(1)),
      values([64, 56, 56, 64]),
    ],
    flops: 0,
    bytes: 5 * 4 * 64 * 56 * 56 * 64,
  },
];

await benchKernels("reductions", [...reductions, ...extremes, ...scans, ...selections, ...counts, ...norms]);
