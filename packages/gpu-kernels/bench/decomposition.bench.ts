// Measures Cholesky factors, triangular solves, eigenvectors and QR factors: large matrices and many small matrices.
// Run: node bench/decomposition.bench.ts [rows whose name contains this]
import { cholesky, eigh, type NdArray, qr, triangularSolve } from "@skein/tensor-core";
import { normalArray, symmetricArray } from "@skein/testing";
import { benchKernels, type KernelRow } from "./kernel-bench.ts";

/** Returns symmetric, diagonally dominant matrices, which are therefore positive definite. */
const definite = (batch: number, size: number): NdArray => {
  const array = normalArray([batch, size, size], 1);
  const { data } = array;
  for (let matrix = 0; matrix < batch; matrix++) {
    const start = matrix * size * size;
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < i; j++) data[start + j * size + i] = data[start + i * size + j]! *= 0.1;
      data[start + i * size + i] = 1 + 0.1 * size;
    }
  }
  return array;
};

const factor = (batch: number, size: number): KernelRow => ({
  name: `cholesky, ${batch} of ${size}`,
  fn: (a) => cholesky(a!),
  inputs: () => [definite(batch, size)],
  flops: (batch * size ** 3) / 3,
  bytes: 8 * batch * size * size,
});

const solve = (batch: number, size: number, columns: number): KernelRow => ({
  name: `triangular solve, ${batch} of ${size}, ${columns} columns`,
  fn: (l, b) => triangularSolve(l!, b!, { lower: true, transpose: false }),
  inputs: () => [definite(batch, size), normalArray([batch, size, columns], 2)],
  flops: batch * size * size * columns,
  bytes: batch * (2 * size * size + 8 * size * columns),
});

const eigen = (batch: number, size: number): KernelRow => ({
  name: `eigh, ${batch} of ${size}`,
  fn: (a) => eigh(a!).values,
  inputs: () => [symmetricArray([batch], size, 1)],
  flops: batch * (17 / 3) * size ** 3,
  bytes: 8 * batch * size * size,
});

const thin = (batch: number, rows: number, columns: number): KernelRow => ({
  name: `qr, ${batch} of ${rows} × ${columns}`,
  fn: (a) => qr(a!).r,
  inputs: () => [normalArray([batch, rows, columns], 1)],
  flops: batch * 4 * columns ** 2 * (rows - columns / 3),
  bytes: 12 * batch * rows * columns,
});

await benchKernels("decompositions", [
  factor(4096, 16),
  factor(256, 64),
  factor(1, 512),
  factor(1, 2048),
  solve(256, 64, 64),
  solve(1, 1024, 1),
  solve(1, 1024, 1024),
  eigen(1024, 16),
  eigen(1, 128),
  thin(256, 64, 16),
  thin(1, 512, 128),
]);
