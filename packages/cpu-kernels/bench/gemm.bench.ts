// Measures the matrix product compared with the peak of one core, for shapes that occur in training.
// Run: node bench/gemm.bench.ts
import { measure, printMeasurement } from "@skein/measuring";
import { firstDifference } from "@skein/testing";
import { productScratchBytes } from "../src/contraction-scratch.ts";
import { openBench } from "./open-bench.ts";

const shapes: readonly (readonly [
  what: string,
  rows: number,
  columns: number,
  inner: number,
  transposeA: number,
  transposeB: number,
])[] = [
  ["square", 512, 512, 512, 0, 0],
  ["square, second transposed", 512, 512, 512, 0, 1],
  ["square, first transposed", 512, 512, 512, 1, 0],
  ["square, both transposed", 512, 512, 512, 1, 1],
  ["dense forward, batch 64", 64, 512, 784, 0, 0],
  ["dense input gradient, batch 64", 64, 784, 512, 0, 1],
  ["dense weight gradient, batch 64", 784, 512, 64, 1, 0],
  ["dense forward, batch 8", 8, 512, 784, 0, 0],
  ["classes forward", 64, 10, 512, 0, 0],
  ["classes weight gradient", 512, 10, 64, 1, 0],
  ["attention scores, one head", 128, 128, 64, 0, 1],
  ["attention values, one head", 128, 64, 128, 0, 0],
  ["one row", 1, 1024, 1024, 0, 0],
  ["one column", 1024, 1, 1024, 0, 0],
];

const { wasm, floats, view, clear } = await openBench();
for (const [what, rows, columns, inner, transposeA, transposeB] of shapes) {
  clear();
  const [a, b, y, expected] = [
    floats(rows * inner),
    floats(inner * columns),
    floats(rows * columns),
    floats(rows * columns),
  ];
  const scratch = floats(productScratchBytes(rows, columns, inner) / 4);
  const call = (): void => void wasm["gemm"]!(a, b, y, rows, columns, inner, transposeA, transposeB, 0, scratch);
  call();
  wasm["gemmNaive"]!(a, b, expected, rows, columns, inner, transposeA, transposeB);
  const difference = firstDifference(view(y, rows * columns), view(expected, rows * columns), {
    absolute: 1e-3,
    relative: 0,
  });
  if (difference !== undefined) throw new Error(`${what}: ${difference}`);
  const layout = `${transposeA ? "T" : "N"}${transposeB ? "T" : "N"}`;
  printMeasurement(`${what} ${rows}×${columns}×${inner} ${layout}`, await measure(call), {
    amount: 2 * rows * columns * inner,
    unit: "FLOP",
  });
}

/**
 * Benchmark cases A·Aᵀ and Aᵀ·A, such as second moments and Muon's Gram matrix. The baseline multiplies A by a separate
 * copy of A, so that it cannot use the symmetry of the result.
 */
const grams: readonly (readonly [what: string, n: number, inner: number, transposed: number])[] = [
  ["patches of a convolution", 400, 12_544, 1],
  ["inputs of a dense layer", 448, 64, 1],
  ["Gram matrix of a long matrix", 128, 3136, 1],
  ["rows with rows", 512, 512, 0],
];
for (const [what, n, inner, transposed] of grams) {
  clear();
  const [x, copy, y] = [floats(n * inner), floats(n * inner), floats(n * n)];
  const scratch = floats(productScratchBytes(n, n, inner) / 4);
  for (const [other, named] of [
    [copy, "a copy"],
    [x, "itself"],
  ] as const)
    printMeasurement(
      `${what} ${n}×${n}×${inner}, with ${named}`,
      await measure(() => void wasm["gemm"]!(x, other, y, n, n, inner, transposed, 1 - transposed, 0, scratch)),
      { amount: 2 * n * n * inner, unit: "FLOP" },
    );
}
