import type { Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { infinite, scaleFunctions } from "./finite.ts";
import { jacobiCode, jacobiLanes, jacobiRows } from "./jacobi.ts";

/** Maximum number of sweeps. Usually six to eight sweeps suffice. */
export const maxSweeps = 14;

/**
 * Computes eigenvalues and eigenvectors of matrices of up to 32 rows, with one workgroup per matrix. The complete
 * matrix is in workgroup memory.
 */
export const smallEighPass = (batch: number, size: number): Pass => ({
  label: "eigh of small matrices",
  bindings: [
    { name: "a", type: "array<f32>", source: { input: 0 }, access: "read" },
    { name: "values", type: "array<f32>", source: { output: 0 }, access: "write" },
    { name: "vectors", type: "array<f32>", source: { output: 1 }, access: "write" },
  ],
  workgroupSize: jacobiLanes,
  groups: batch,
  sizes: { n: size, even: size + (size % 2) },
  code: wgsl`
    ${scaleFunctions}
    ${jacobiCode}
    var<workgroup> largest: atomic<u32>;
    var<workgroup> again: u32;
    var<workgroup> factors: array<f32, ${jacobiRows}>;
    var<workgroup> ranks: array<u32, ${jacobiRows}>;
    fn lower_at(group: u32, i: u32, j: u32) -> f32 { return a[(group * sizes.n + max(i, j)) * sizes.n + min(i, j)]; }
    fn main(group: u32, lane: u32) {
      let n = sizes.n;
      var most = 0u;
      for (var e = lane; e < n * n; e += ${jacobiLanes}u) {
        most = max(most, bitcast<u32>(lower_at(group, e / n, e % n)) & 0x7fffffffu);
      }
      atomicMax(&largest, most);
      workgroupBarrier();
      let bits = atomicLoad(&largest);
      for (var e = lane; e < sizes.even * sizes.even; e += ${jacobiLanes}u) {
        let i = e / sizes.even;
        let j = e % sizes.even;
        let at = i * jacobi_stride + j;
        turn[at] = select(0.0, 1.0, i == j);
        block[at] = 0.0;
        if (i < n && j < n && bits < ${infinite}) { block[at] = lower_at(group, i, j) * scale_of(bits); }
      }
      for (var sweep = 0u; sweep < ${maxSweeps}u; sweep++) {
        jacobi_sweep(lane, sizes.even);
        if (lane == 0u) {
          again = atomicLoad(&moved);
          atomicStore(&moved, 0u);
        }
        if (workgroupUniformLoad(&again) == 0u) { break; }
      }
      if (lane < n) {
        let value = block[lane * jacobi_stride + lane];
        var rank = 0u;
        for (var k = 0u; k < n; k++) {
          let other = block[k * jacobi_stride + k];
          if (other < value || (other == value && k < lane)) { rank++; }
        }
        var sum = 0.0;
        var peak = 0.0;
        for (var k = 0u; k < n; k++) {
          let x = turn[lane * jacobi_stride + k];
          sum = fma(x, x, sum);
          if (abs(x) > abs(peak)) { peak = x; }
        }
        ranks[rank] = lane;
        factors[rank] = select(1.0, -1.0, peak < 0.0) / sqrt(sum);
        if (bits < ${infinite}) { values[group * n + rank] = value * unscale_of(bits); }
        else { values[group * n + rank] = not_a_number(); }
      }
      workgroupBarrier();
      for (var e = lane; e < n * n; e += ${jacobiLanes}u) {
        let i = e / n;
        let j = e % n;
        if (bits < ${infinite}) { vectors[group * n * n + e] = turn[ranks[j] * jacobi_stride + i] * factors[j]; }
        else { vectors[group * n * n + e] = not_a_number(); }
      }
    }
  `,
});
