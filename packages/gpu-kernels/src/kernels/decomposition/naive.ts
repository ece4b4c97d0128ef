import type { KernelPlan } from "../../kernel.ts";
import { pivotFunction } from "./block.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;

/**
 * Computes Cholesky factors by definition: one invocation per matrix, row by row. Reference for tests of the blocked
 * factorization.
 */
export const choleskyNaive = (batch: number, size: number): KernelPlan => ({
  passes: [
    {
      label: "cholesky naive",
      bindings: [
        { name: "a", type: "array<f32>", source: { input: 0 }, access: "read" },
        { name: "l", type: "array<f32>", source: { output: 0 }, access: "write" },
      ],
      workgroupSize: lanes,
      groups: Math.ceil(batch / lanes),
      sizes: { n: size, batch },
      code: wgsl`
        ${pivotFunction}
        fn main(group: u32, lane: u32) {
          let matrix = group * ${lanes}u + lane;
          if (matrix >= sizes.batch) { return; }
          let corner = matrix * sizes.n * sizes.n;
          for (var i = 0u; i < sizes.n; i++) {
            for (var j = 0u; j < sizes.n; j++) {
              let at = corner + i * sizes.n + j;
              if (j > i) {
                l[at] = 0.0;
                continue;
              }
              var sum = a[at];
              for (var k = 0u; k < j; k++) { sum -= l[corner + i * sizes.n + k] * l[corner + j * sizes.n + k]; }
              if (j == i) { l[at] = pivot_of(sum); } else { l[at] = sum / l[corner + j * sizes.n + j]; }
            }
          }
        }
      `,
    },
  ],
});

/**
 * Computes eigenvalues and eigenvectors by cyclic Jacobi rotations, one invocation per matrix. Reference for tests of
 * the parallel rotations. Eigenvalues are on the diagonal of scratch block 0 until selection sort orders them.
 */
export const eighNaive = (batch: number, size: number): KernelPlan => ({
  scratch: [4 * batch * size * size],
  passes: [
    {
      label: "eigh naive",
      bindings: [
        { name: "a", type: "array<f32>", source: { input: 0 }, access: "read" },
        { name: "work", type: "array<f32>", source: { scratch: 0 }, access: "write" },
        { name: "values", type: "array<f32>", source: { output: 0 }, access: "write" },
        { name: "vectors", type: "array<f32>", source: { output: 1 }, access: "write" },
      ],
      workgroupSize: lanes,
      groups: Math.ceil(batch / lanes),
      sizes: { n: size, batch },
      code: wgsl`
        fn turn_columns(base: u32, p: u32, q: u32, c: f32, s: f32) {
          for (var k = 0u; k < sizes.n; k++) {
            let x = work[base + k * sizes.n + p];
            let y = work[base + k * sizes.n + q];
            work[base + k * sizes.n + p] = c * x - s * y;
            work[base + k * sizes.n + q] = s * x + c * y;
            let v = vectors[base + k * sizes.n + p];
            let w = vectors[base + k * sizes.n + q];
            vectors[base + k * sizes.n + p] = c * v - s * w;
            vectors[base + k * sizes.n + q] = s * v + c * w;
          }
        }
        fn turn_rows(base: u32, p: u32, q: u32, c: f32, s: f32) {
          for (var k = 0u; k < sizes.n; k++) {
            let x = work[base + p * sizes.n + k];
            let y = work[base + q * sizes.n + k];
            work[base + p * sizes.n + k] = c * x - s * y;
            work[base + q * sizes.n + k] = s * x + c * y;
          }
        }
        fn swap_columns(base: u32, p: u32, q: u32) {
          for (var k = 0u; k < sizes.n; k++) {
            let x = vectors[base + k * sizes.n + p];
            vectors[base + k * sizes.n + p] = vectors[base + k * sizes.n + q];
            vectors[base + k * sizes.n + q] = x;
          }
        }
        fn main(group: u32, lane: u32) {
          let matrix = group * ${lanes}u + lane;
          if (matrix >= sizes.batch) { return; }
          let n = sizes.n;
          let base = matrix * n * n;
          for (var e = 0u; e < n * n; e++) {
            work[base + e] = a[base + max(e / n, e % n) * n + min(e / n, e % n)];
            vectors[base + e] = select(0.0, 1.0, e / n == e % n);
          }
          for (var sweep = 0u; sweep < 12u; sweep++) {
            for (var p = 0u; p < n; p++) {
              for (var q = p + 1u; q < n; q++) {
                let off = work[base + p * n + q];
                if (off == 0.0) { continue; }
                let half = (work[base + q * n + q] - work[base + p * n + p]) / (2.0 * off);
                // The square of a large one is infinity, and t then the 0 that it should be.
                let t = select(1.0, -1.0, half < 0.0) / (abs(half) + sqrt(1.0 + half * half));
                let c = 1.0 / sqrt(1.0 + t * t);
                turn_columns(base, p, q, c, t * c);
                turn_rows(base, p, q, c, t * c);
              }
            }
          }
          for (var i = 0u; i < n; i++) { values[matrix * n + i] = work[base + i * n + i]; }
          for (var i = 0u; i < n; i++) {
            var least = i;
            for (var k = i + 1u; k < n; k++) {
              if (values[matrix * n + k] < values[matrix * n + least]) { least = k; }
            }
            let value = values[matrix * n + i];
            values[matrix * n + i] = values[matrix * n + least];
            values[matrix * n + least] = value;
            swap_columns(base, i, least);
            var peak = 0.0;
            for (var k = 0u; k < n; k++) {
              let x = vectors[base + k * n + i];
              if (abs(x) > abs(peak)) { peak = x; }
            }
            if (peak < 0.0) { for (var k = 0u; k < n; k++) { vectors[base + k * n + i] *= -1.0; } }
          }
        }
      `,
    },
  ],
});

/**
 * Computes QR factors by modified Gram–Schmidt, one invocation per matrix. Requires linearly independent columns.
 * Reference for tests of reflections.
 */
export const qrNaive = (batch: number, rows: number, columns: number): KernelPlan => ({
  passes: [
    {
      label: "qr naive",
      bindings: [
        { name: "a", type: "array<f32>", source: { input: 0 }, access: "read" },
        { name: "q", type: "array<f32>", source: { output: 0 }, access: "write" },
        { name: "r", type: "array<f32>", source: { output: 1 }, access: "write" },
      ],
      workgroupSize: lanes,
      groups: Math.ceil(batch / lanes),
      sizes: { n: rows, m: columns, batch },
      code: wgsl`
        fn main(group: u32, lane: u32) {
          let matrix = group * ${lanes}u + lane;
          if (matrix >= sizes.batch) { return; }
          let m = sizes.m;
          let base = matrix * sizes.n * m;
          for (var e = 0u; e < sizes.n * m; e++) { q[base + e] = a[base + e]; }
          for (var j = 0u; j < m; j++) {
            for (var k = 0u; k < j; k++) {
              var sum = 0.0;
              for (var i = 0u; i < sizes.n; i++) { sum += q[base + i * m + k] * q[base + i * m + j]; }
              for (var i = 0u; i < sizes.n; i++) { q[base + i * m + j] -= sum * q[base + i * m + k]; }
              r[(matrix * m + k) * m + j] = sum;
              r[(matrix * m + j) * m + k] = 0.0;
            }
            var squares = 0.0;
            for (var i = 0u; i < sizes.n; i++) { squares += q[base + i * m + j] * q[base + i * m + j]; }
            r[(matrix * m + j) * m + j] = sqrt(squares);
            for (var i = 0u; i < sizes.n; i++) { q[base + i * m + j] /= sqrt(squares); }
          }
        }
      `,
    },
  ],
});
