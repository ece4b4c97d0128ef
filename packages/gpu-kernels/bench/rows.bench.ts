// Measures the kernels over rows compared with copy bandwidth.
// Run: node bench/rows.bench.ts [part of a name]
import {
  layerNorm,
  type NdArray,
  rmsNorm,
  type Shape,
  softmax,
  type Tensor,
  crossEntropyPerRow,
} from "@skein/tensor-core";
import { emit, emitOne } from "@skein/tensor-core/backend";
import { normalArray, uniformArray } from "@skein/testing";
import { benchKernels, type KernelRow } from "./kernel-bench.ts";

const bytesOf = (shape: Shape): number => shape.reduce((product, size) => product * size, 4);

/**
 * Returns a benchmark case for one operator over rows. `read` and `written` count complete passes over [rows, columns].
 */
const rowsOf = (
  op: string,
  shape: Shape,
  read: number,
  written: number,
  fn: KernelRow["fn"],
  inputs: () => readonly NdArray[],
): KernelRow => ({
  name: `${op} [${shape.join(", ")}]`,
  fn,
  inputs,
  flops: 0,
  bytes: (read + written) * bytesOf(shape),
  tolerance: 5e-3, // sums of many rows
});

const perColumn = (columns: number, seed: number): NdArray => uniformArray([columns], 0.5, 1.5, seed);

const family = (shape: readonly [number, number]): KernelRow[] => {
  const [rows, columns] = shape;
  const labels = (): NdArray => uniformArray([rows], 0, columns, 3, "i32");
  return [
    rowsOf(
      "softmax",
      shape,
      1,
      1,
      (x) => softmax(x!),
      () => [normalArray(shape)],
    ),
    rowsOf(
      "softmax-backward",
      shape,
      2,
      1,
      (y, g) => emitOne("softmax-backward", [y!, g!]),
      () => [uniformArray(shape, 0, 2 / columns), normalArray(shape, 2)],
    ),
    rowsOf(
      "layer-norm",
      shape,
      1,
      1,
      (x, gamma, beta) => layerNorm(x!, gamma!, beta!),
      () => [normalArray(shape), perColumn(columns, 1), normalArray([columns], 2)],
    ),
    rowsOf(
      "rms-norm",
      shape,
      1,
      1,
      (x, gamma) => rmsNorm(x!, gamma!),
      () => [normalArray(shape), perColumn(columns, 1)],
    ),
    rowsOf(
      "layer-norm-backward",
      shape,
      2,
      1,
      (...inputs: Tensor[]) => emit("layer-norm-backward", inputs),
      () => [
        normalArray(shape),
        perColumn(columns, 1),
        normalArray([rows], 2),
        uniformArray([rows], 0.5, 2),
        normalArray(shape, 3),
      ],
    ),
    rowsOf(
      "cross-entropy",
      shape,
      1,
      0,
      (x, y) => crossEntropyPerRow(x!, y!),
      () => [normalArray(shape), labels()],
    ),
    rowsOf(
      "cross-entropy-backward",
      shape,
      1,
      1,
      (...inputs: Tensor[]) => emitOne("cross-entropy-backward", inputs),
      () => [
        normalArray(shape),
        labels(),
        uniformArray([rows], 3, 4),
        uniformArray([rows], 5, 500, 4),
        normalArray([rows], 2),
      ],
    ),
  ];
};

// 8192 rows of 50,257 logits are 1.6 GB, which exceeds the binding size of some devices, and is more than the CPU check
// needs.
const vocabulary = process.env["SKEIN_BENCH_LARGE"] === undefined ? 512 : 8192;

await benchKernels("rows", [...family([4096, 768]), ...family([65_536, 128]), ...family([vocabulary, 50_257])]);
