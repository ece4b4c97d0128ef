import {
  concat,
  full,
  gather,
  NdArray,
  pad,
  permuteRows,
  scatterAdd,
  type Shape,
  slice,
  type Tensor,
  transpose,
} from "@skein/tensor-core";
import { normalArray, uniformArray } from "@skein/testing";
import { benchKernels, type KernelRow } from "./kernel-bench.ts";

// Measures movement. Every row only moves bytes, so the most important result is the fraction of the copy ceiling.

const bytesOf = (shape: Shape): number => shape.reduce((product, size) => product * size, 4);

/** Returns a benchmark case for a function of one f32 tensor that reads and writes the same number of bytes. */
const moving = (name: string, shape: Shape, fn: (x: Tensor) => Tensor, written: Shape = shape): KernelRow => ({
  name,
  fn: (x) => fn(x!),
  inputs: () => [normalArray(shape)],
  flops: 0,
  bytes: 2 * bytesOf(written),
});

const shuffled = (count: number): NdArray => {
  const keys = uniformArray([count], 0, 1, 3).toNumbers();
  const order = Array.from({ length: count }, (_, i) => i).sort((a, b) => keys[a]! - keys[b]!);
  return NdArray.from(order, [count], "i32");
};

/** Returns a benchmark case for the gradient of a table, as in the backward pass of an embedding. */
const scattered = (name: string, rows: number, width: number, indices: () => NdArray, count: number): KernelRow => ({
  name,
  fn: (i, u) => scatterAdd(full([rows, width], 0), i!, u!),
  inputs: () => [indices(), normalArray([count, width], 2)],
  flops: count * width,
  bytes: 4 * (count + rows * width + 3 * count * width),
});

await benchKernels("movement and indexing", [
  moving("concat columns, 2 × [4096, 2048]", [4096, 2048], (x) => concat([x, x], { dim: 1 }), [4096, 4096]),
  moving("slice columns, [4096, 4095] of [4096, 4096]", [4096, 4096], (x) => slice(x, [0, 1]), [4096, 4095]),
  // biome-ignore format: one row
  moving("pad image border, [16, 112, 112, 64]", [16, 112, 112, 64], (x) => pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])),
  moving("transpose [4096, 4096]", [4096, 4096], (x) => transpose(x)),
  moving("transpose [4095, 4097]", [4095, 4097], (x) => transpose(x)),
  moving("heads [8, 1024, 12, 64] → [8, 12, 1024, 64]", [8, 1024, 12, 64], (x) => transpose(x, [0, 2, 1, 3])),
  moving("heads [8, 1024, 12, 64] → [8, 12, 64, 1024]", [8, 1024, 12, 64], (x) => transpose(x, [0, 2, 3, 1])),
  moving("channels first, [32, 56, 56, 64]", [32, 56, 56, 64], (x) => transpose(x, [0, 3, 1, 2])),
  moving("channels last, [32, 3, 224, 224]", [32, 3, 224, 224], (x) => transpose(x, [0, 2, 3, 1])),
  {
    name: "permute rows, [4096, 3072]",
    fn: (x, p) => permuteRows(x!, p!),
    inputs: () => [normalArray([4096, 3072]), shuffled(4096)],
    flops: 0,
    bytes: 2 * bytesOf([4096, 3072]),
  },
  {
    name: "embedding [32768, 768], 4096 tokens",
    fn: (x, i) => gather(x!, i!),
    inputs: () => [normalArray([32768, 768]), uniformArray([4096], 0, 32768, 5, "i32")],
    flops: 0,
    bytes: 2 * bytesOf([4096, 768]),
  },
  scattered(
    "embedding gradient [32768, 768], 4096 tokens",
    32768,
    768,
    () => uniformArray([4096], 0, 32768, 5, "i32"),
    4096,
  ),
  scattered("embedding gradient, one hot row", 32768, 768, () => NdArray.zeros("i32", [4096]), 4096),
  scattered("histogram [256], a million weights", 256, 1, () => uniformArray([2 ** 20], 0, 256, 5, "i32"), 2 ** 20),
]);
