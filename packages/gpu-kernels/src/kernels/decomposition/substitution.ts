import { blockRows, triangleEntries } from "./block.ts";
import { wgsl } from "../../wgsl.ts";

export interface Substitution {
  readonly lanes: number;
  readonly unitDiagonal: boolean;
  /**
   * Whether the matrix is stored by columns, so that the entries of a column are contiguous in memory, as in the panel
   * of a factor. If false, the entries of a row are contiguous.
   */
  readonly alongColumns: boolean;
}

/**
 * Returns WGSL of `fn substitute(lane, size, columns)`, which solves a lower triangle of `size` ≤ 64 rows for one
 * column per lane, with `size`²/2 multiply-adds per column. The caller defines `triangle_at(i, k)` for k ≤ i < size,
 * and `load(k, t)` and `store(k, t, x)` for entry k of column t < `columns`.
 */
export const substitutionCode = ({ lanes, unitDiagonal, alongColumns }: Substitution): string => {
  // Distance between rows in workgroup memory. Odd, so that lanes that load one column write to different banks.
  const stride = lanes + 1;
  const entryCode = alongColumns
    ? wgsl`
      let t = e / ${blockRows}u;
      let k = e % ${blockRows}u;
    `
    : wgsl`
      let t = e % ${lanes}u;
      let k = e / ${lanes}u;
    `;
  return wgsl`
    var<workgroup> triangle: array<f32, ${triangleEntries}>;
    var<workgroup> side: array<f32, ${blockRows * stride}>;
    fn substitute(lane: u32, size: u32, columns: u32) {
      for (var e = lane; e < size * ${blockRows}u; e += ${lanes}u) {
        let i = e / ${blockRows}u;
        let k = e % ${blockRows}u;
        if (k <= i) { triangle[i * (i + 1u) / 2u + k] = triangle_at(i, k); }
      }
      for (var e = lane; e < ${blockRows * lanes}u; e += ${lanes}u) {
        ${entryCode}
        if (k < size && t < columns) { side[k * ${stride}u + t] = load(k, t); }
      }
      workgroupBarrier();
      if (lane < columns) {
        for (var i = 0u; i < size; i++) {
          let row = i * (i + 1u) / 2u;
          var sum = side[i * ${stride}u + lane];
          for (var k = 0u; k < i; k++) { sum = fma(-triangle[row + k], side[k * ${stride}u + lane], sum); }
          side[i * ${stride}u + lane] = ${unitDiagonal ? "sum" : "sum / triangle[row + i]"};
        }
      }
      workgroupBarrier();
      for (var e = lane; e < ${blockRows * lanes}u; e += ${lanes}u) {
        ${entryCode}
        if (k < size && t < columns) { store(k, t, side[k * ${stride}u + t]); }
      }
    }
  `;
};
