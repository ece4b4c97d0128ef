// Measures the matrix product compared with the roofline, by variant and for training shapes.
// Run: node bench/matmul.bench.ts [rows whose name contains this]
import { matmul, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { benchKernels, type KernelRow } from "./kernel-bench.ts";

const row = (
  what: string,
  rows: number,
  columns: number,
  inner: number,
  layout: "NN" | "NT" | "TN" = "NN",
  batch: readonly number[] = [],
): KernelRow => {
  const [transposeA, transposeB] = [layout[0] === "T", layout[1] === "T"];
  const matrices = batch.reduce((product, size) => product * size, 1);
  return {
    name: `${what} ${[...batch, rows].join("×")}×${columns}×${inner} ${layout}`,
    fn: (a: Tensor, b: Tensor) => matmul(a, b, { transposeA, transposeB }),
    inputs: () => [
      normalArray([...batch, ...(transposeA ? [inner, rows] : [rows, inner])], 1),
      normalArray([...batch, ...(transposeB ? [columns, inner] : [inner, columns])], 2),
    ],
    flops: 2 * matrices * rows * columns * inner,
    bytes: 4 * matrices * (rows * inner + inner * columns + rows * columns),
    tolerance: 1e-3 * Math.sqrt(inner / 256),
  };
};

const squares = [256, 512, 1024, 2048].flatMap((size) =>
  (["NN", "NT", "TN"] as const).map((layout) => row("square", size, size, size, layout)),
);

const layers: readonly KernelRow[] = [
  row("mlp forward", 64, 512, 784),
  row("mlp input gradient", 64, 784, 512, "NT"),
  row("mlp weight gradient", 784, 512, 64, "TN"),
  row("classes forward", 64, 10, 512),
  row("classes weight gradient", 512, 10, 64, "TN"),
  row("gpt qkv", 1024, 2304, 768),
  row("gpt mlp up", 1024, 3072, 768),
  row("gpt mlp down", 1024, 768, 3072),
  row("gpt mlp weight gradient", 768, 3072, 1024, "TN"),
  row("gpt attention scores", 128, 128, 64, "NT", [8, 12]),
  row("gpt attention values", 128, 64, 128, "NN", [8, 12]),
  row("one token up", 1, 3072, 768),
  row("one token down", 1, 768, 3072, "NT"),
  row("long sums", 64, 64, 65536, "TN"),
];

await benchKernels("matmul", [...squares, ...layers]);
