import type { BindingSource, KernelPlan, Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { maxSweeps, smallEighPass } from "./eigh-small.ts";
import { infinite, largestPass, scaleFunctions } from "./finite.ts";
import { jacobiCode, jacobiLanes, jacobiRows, pairFunctions } from "./jacobi.ts";

// Number of rows per block, 16. Matrices of more than 32 rows are processed by blocks. In each round, every block is
// paired with one other block. The 32 × 32 matrix of each pair is rotated in workgroup memory, then all rows and
// columns are multiplied by the rotations. Scratch memory holds the scaled matrix and the transposed eigenvectors, both
// padded with zeros to complete pairs of blocks. The padding is never rotated.

const half = jacobiRows / 2;
const stride = jacobiRows + 1;
const work: BindingSource = { scratch: 0 };
const rows: BindingSource = { scratch: 1 };
const rotations: BindingSource = { scratch: 2 };
const info: BindingSource = { scratch: 3 };
const order: BindingSource = { scratch: 4 };

// Number of words of `info` per matrix: the maximum magnitude, and for each sweep whether the previous sweep rotated
// anything.
const words = maxSweeps + 2;

interface Blocks {
  readonly batch: number;
  readonly size: number;
  readonly padded: number;
  /** Number of pairs of row blocks that are rotated in one Jacobi round. */
  readonly pairs: number;
}

const fillLanes = 256;

const fillPass = ({ batch, size, padded }: Blocks): Pass => ({
  label: "eigh fill",
  bindings: [
    { name: "a", type: "array<f32>", source: { input: 0 }, access: "read" },
    { name: "info", type: "array<u32>", source: info, access: "read" },
    { name: "work", type: "array<f32>", source: work, access: "write" },
    { name: "rows", type: "array<f32>", source: rows, access: "write" },
  ],
  workgroupSize: fillLanes,
  groups: Math.ceil((batch * padded * padded) / fillLanes),
  sizes: { n: size, padded, count: batch * padded * padded },
  code: wgsl`
    ${scaleFunctions}
    fn main(group: u32, lane: u32) {
      let at = group * ${fillLanes}u + lane;
      if (at >= sizes.count) { return; }
      let matrix = at / (sizes.padded * sizes.padded);
      let i = at / sizes.padded % sizes.padded;
      let j = at % sizes.padded;
      let bits = info[matrix * ${words}u];
      var x = 0.0;
      if (max(i, j) < sizes.n && bits < ${infinite}) {
        x = a[(matrix * sizes.n + max(i, j)) * sizes.n + min(i, j)] * scale_of(bits);
      }
      work[at] = x;
      rows[at] = select(0.0, 1.0, i == j);
    }
  `,
});

/** WGSL of `fn row_of(pair, t)`, which returns the matrix row of row t < 32 within a pair of row blocks. */
const rowFunction = wgsl`
  fn row_of(pair: u32, t: u32) -> u32 {
    let count = 2u * sizes.pairs;
    let first = first_of(pair, sizes.round, count);
    let second = second_of(pair, sizes.round, count);
    return select(second * ${half}u + t - ${half}u, first * ${half}u + t, t < ${half}u);
  }
`;

/** Runs one Jacobi sweep on the 32 × 32 matrix of each block pair in a round, and stores the rotations. */
const rotatePass = ({ batch, padded, pairs }: Blocks, sweep: number, round: number): Pass => ({
  label: "eigh turn of blocks",
  bindings: [
    { name: "work", type: "array<f32>", source: work, access: "write" },
    { name: "turns", type: "array<f32>", source: rotations, access: "write" },
    { name: "info", type: "array<atomic<u32>>", source: info, access: "write" },
  ],
  workgroupSize: jacobiLanes,
  groups: batch * pairs,
  sizes: { padded, pairs, sweep, round },
  code: wgsl`
    ${jacobiCode}
    ${rowFunction}
    var<workgroup> again: u32;
    fn main(group: u32, lane: u32) {
      let matrix = group / sizes.pairs;
      let pair = group % sizes.pairs;
      if (lane == 0u) { again = atomicLoad(&info[matrix * ${words}u + sizes.sweep + 1u]); }
      if (workgroupUniformLoad(&again) == 0u) { return; }
      let base = matrix * sizes.padded * sizes.padded;
      for (var e = lane; e < ${jacobiRows ** 2}u; e += ${jacobiLanes}u) {
        let i = e / ${jacobiRows}u;
        let j = e % ${jacobiRows}u;
        block[i * jacobi_stride + j] = work[base + row_of(pair, i) * sizes.padded + row_of(pair, j)];
        turn[i * jacobi_stride + j] = select(0.0, 1.0, i == j);
      }
      jacobi_sweep(lane, ${jacobiRows}u);
      for (var e = lane; e < ${jacobiRows ** 2}u; e += ${jacobiLanes}u) {
        let i = e / ${jacobiRows}u;
        let j = e % ${jacobiRows}u;
        work[base + row_of(pair, i) * sizes.padded + row_of(pair, j)] = block[i * jacobi_stride + j];
        turns[group * ${jacobiRows ** 2}u + e] = turn[i * jacobi_stride + j];
      }
      if (lane == 0u && atomicLoad(&moved) != 0u) { atomicStore(&info[matrix * ${words}u + sizes.sweep + 2u], 1u); }
    }
  `,
});

const productLanes = 64;

/**
 * Multiplies by the rotations from one round. A workgroup multiplies either a 32 × 32 matrix tile, which belongs to two
 * block pairs, or 32 columns of the eigenvector rows for one pair. Matrix tiles are multiplied from both sides, and the
 * mirrored tile is also written. Tiles of a pair with itself have already been rotated.
 */
const productPass = ({ batch, padded, pairs }: Blocks, sweep: number, round: number): Pass => {
  const tiles = (pairs * (pairs - 1)) / 2;
  const groups = tiles + pairs * (padded / jacobiRows);
  return {
    label: "eigh product with turns",
    bindings: [
      { name: "work", type: "array<f32>", source: work, access: "write" },
      { name: "rows", type: "array<f32>", source: rows, access: "write" },
      { name: "turns", type: "array<f32>", source: rotations, access: "read" },
      { name: "info", type: "array<u32>", source: info, access: "read" },
    ],
    workgroupSize: productLanes,
    groups: batch * groups,
    sizes: { padded, pairs, sweep, round, tiles, groups },
    code: wgsl`
      ${pairFunctions}
      ${rowFunction}
      var<workgroup> again: u32;
      var<workgroup> left: array<f32, ${jacobiRows * stride}>;
      var<workgroup> right: array<f32, ${jacobiRows * stride}>;
      var<workgroup> tile: array<f32, ${jacobiRows * stride}>;
      fn load_turn(matrix: u32, pair: u32, lane: u32, into_left: bool) {
        for (var e = lane; e < ${jacobiRows ** 2}u; e += ${productLanes}u) {
          let x = turns[(matrix * sizes.pairs + pair) * ${jacobiRows ** 2}u + e];
          let at = e / ${jacobiRows}u * ${stride}u + e % ${jacobiRows}u;
          if (into_left) { left[at] = x; } else { right[at] = x; }
        }
      }
      // Each invocation has 4 × 4 results; sums run over a row of a turn and, for the left one, a column of the tile.
      fn multiply(lane: u32, by_left: bool) {
        let i = lane / 8u;
        let j = lane % 8u;
        var sums: array<vec4<f32>, 4>;
        for (var k = 0u; k < ${jacobiRows}u; k++) {
          if (by_left) {
            let t = k * ${stride}u + j;
            let x = vec4<f32>(tile[t], tile[t + 8u], tile[t + 16u], tile[t + 24u]);
            for (var r = 0u; r < 4u; r++) { sums[r] = fma(vec4<f32>(left[(i + 8u * r) * ${stride}u + k]), x, sums[r]); }
          } else {
            let t = j * ${stride}u + k;
            let x = vec4<f32>(right[t], right[t + ${8 * stride}u], right[t + ${16 * stride}u], right[t + ${24 * stride}u]);
            for (var r = 0u; r < 4u; r++) { sums[r] = fma(vec4<f32>(tile[(i + 8u * r) * ${stride}u + k]), x, sums[r]); }
          }
        }
        workgroupBarrier();
        for (var r = 0u; r < 4u; r++) {
          for (var c = 0u; c < 4u; c++) { tile[(i + 8u * r) * ${stride}u + j + 8u * c] = sums[r][c]; }
        }
        workgroupBarrier();
      }
      fn main(group: u32, lane: u32) {
        let matrix = group / sizes.groups;
        let item = group % sizes.groups;
        if (lane == 0u) { again = info[matrix * ${words}u + sizes.sweep + 1u]; }
        if (workgroupUniformLoad(&again) == 0u) { return; }
        let base = matrix * sizes.padded * sizes.padded;
        if (item < sizes.tiles) {
          // Tile (p, q), q < p, has number p(p − 1)/2 + q; the root may be off by one.
          var p = u32((sqrt(8.0 * f32(item) + 1.0) + 1.0) * 0.5);
          if (p * (p - 1u) / 2u > item) { p--; }
          if (p * (p + 1u) / 2u <= item) { p++; }
          let q = item - p * (p - 1u) / 2u;
          load_turn(matrix, p, lane, true);
          load_turn(matrix, q, lane, false);
          for (var e = lane; e < ${jacobiRows ** 2}u; e += ${productLanes}u) {
            let i = e / ${jacobiRows}u;
            let j = e % ${jacobiRows}u;
            tile[i * ${stride}u + j] = work[base + row_of(p, i) * sizes.padded + row_of(q, j)];
          }
          workgroupBarrier();
          multiply(lane, true);
          multiply(lane, false);
          for (var e = lane; e < ${jacobiRows ** 2}u; e += ${productLanes}u) {
            let i = e / ${jacobiRows}u;
            let j = e % ${jacobiRows}u;
            work[base + row_of(p, i) * sizes.padded + row_of(q, j)] = tile[i * ${stride}u + j];
            work[base + row_of(q, i) * sizes.padded + row_of(p, j)] = tile[j * ${stride}u + i];
          }
        } else {
          let p = (item - sizes.tiles) % sizes.pairs;
          let first = (item - sizes.tiles) / sizes.pairs * ${jacobiRows}u;
          load_turn(matrix, p, lane, true);
          for (var e = lane; e < ${jacobiRows ** 2}u; e += ${productLanes}u) {
            let i = e / ${jacobiRows}u;
            let j = e % ${jacobiRows}u;
            tile[i * ${stride}u + j] = rows[base + row_of(p, i) * sizes.padded + first + j];
          }
          workgroupBarrier();
          multiply(lane, true);
          for (var e = lane; e < ${jacobiRows ** 2}u; e += ${productLanes}u) {
            let i = e / ${jacobiRows}u;
            let j = e % ${jacobiRows}u;
            rows[base + row_of(p, i) * sizes.padded + first + j] = tile[i * ${stride}u + j];
          }
        }
      }
    `,
  };
};

const rankLanes = 64;

/**
 * Writes the eigenvalues in ascending order, and for each eigenvalue the index of the row that holds its eigenvector.
 */
const rankPass = ({ batch, size, padded }: Blocks): Pass => ({
  label: "eigh order",
  bindings: [
    { name: "work", type: "array<f32>", source: work, access: "read" },
    { name: "info", type: "array<u32>", source: info, access: "read" },
    { name: "order", type: "array<u32>", source: order, access: "write" },
    { name: "values", type: "array<f32>", source: { output: 0 }, access: "write" },
  ],
  workgroupSize: rankLanes,
  groups: Math.ceil((batch * size) / rankLanes),
  sizes: { n: size, padded, count: batch * size },
  code: wgsl`
    ${scaleFunctions}
    fn main(group: u32, lane: u32) {
      let at = group * ${rankLanes}u + lane;
      if (at >= sizes.count) { return; }
      let matrix = at / sizes.n;
      let row = at % sizes.n;
      let base = matrix * sizes.padded * sizes.padded;
      let value = work[base + row * (sizes.padded + 1u)];
      var rank = 0u;
      for (var k = 0u; k < sizes.n; k++) {
        let other = work[base + k * (sizes.padded + 1u)];
        if (other < value || (other == value && k < row)) { rank++; }
      }
      let bits = info[matrix * ${words}u];
      order[matrix * sizes.n + rank] = row;
      if (bits < ${infinite}) { values[matrix * sizes.n + rank] = value * unscale_of(bits); }
      else { values[matrix * sizes.n + rank] = not_a_number(); }
    }
  `,
});

/**
 * Normalizes eigenvectors, one per workgroup: length 1, and a positive sign of the entry of maximum magnitude (the
 * first such entry if several are equal).
 */
const vectorPass = ({ batch, size, padded }: Blocks): Pass => ({
  label: "eigh vectors",
  bindings: [
    { name: "rows", type: "array<f32>", source: rows, access: "read" },
    { name: "info", type: "array<u32>", source: info, access: "read" },
    { name: "order", type: "array<u32>", source: order, access: "read" },
    { name: "vectors", type: "array<f32>", source: { output: 1 }, access: "write" },
  ],
  workgroupSize: rankLanes,
  groups: batch * size,
  sizes: { n: size, padded },
  code: wgsl`
    ${scaleFunctions}
    var<workgroup> sums: array<f32, ${rankLanes}>;
    var<workgroup> peaks: array<f32, ${rankLanes}>;
    var<workgroup> places: array<u32, ${rankLanes}>;
    fn main(group: u32, lane: u32) {
      let n = sizes.n;
      let matrix = group / n;
      let source = (matrix * sizes.padded + order[group]) * sizes.padded;
      var sum = 0.0;
      var peak = 0.0;
      var place = 0u;
      for (var i = lane; i < n; i += ${rankLanes}u) {
        let x = rows[source + i];
        sum = fma(x, x, sum);
        if (abs(x) > abs(peak)) {
          peak = x;
          place = i;
        }
      }
      sums[lane] = sum;
      peaks[lane] = peak;
      places[lane] = place;
      workgroupBarrier();
      sum = 0.0;
      peak = 0.0;
      place = 0u;
      for (var k = 0u; k < ${rankLanes}u; k++) {
        sum += sums[k];
        let x = peaks[k];
        if (abs(x) > abs(peak) || (abs(x) == abs(peak) && places[k] < place)) {
          peak = x;
          place = places[k];
        }
      }
      let factor = select(1.0, -1.0, peak < 0.0) / sqrt(sum);
      let finite = info[matrix * ${words}u] < ${infinite};
      for (var i = lane; i < n; i += ${rankLanes}u) {
        let to = (matrix * n + i) * n + group % n;
        if (finite) { vectors[to] = rows[source + i] * factor; } else { vectors[to] = not_a_number(); }
      }
    }
  `,
});

/**
 * Returns the plan of the eigenvalues and eigenvectors of `batch` symmetric matrices [size, size] by Jacobi rotations.
 * Up to 32 rows: one pass, one workgroup per matrix. More rows: two passes for each of the `padded`/16 − 1 rounds of a
 * sweep. After a sweep without rotations, the passes of later sweeps return immediately.
 */
export const eighPlan = (batch: number, size: number): KernelPlan => {
  if (size <= jacobiRows) return { passes: [smallEighPass(batch, size)] };
  const padded = Math.ceil(size / jacobiRows) * jacobiRows;
  const blocks: Blocks = { batch, size, padded, pairs: padded / jacobiRows };
  const bytes = 4 * batch * padded * padded;
  return {
    scratch: [bytes, bytes, 4 * batch * blocks.pairs * jacobiRows ** 2, 4 * batch * words, 4 * batch * size],
    passes: [
      largestPass({ batch, rows: size, columns: size, lower: true, info, words }),
      fillPass(blocks),
      ...Array.from({ length: maxSweeps }, (_, sweep) => sweep).flatMap((sweep) =>
        Array.from({ length: 2 * blocks.pairs - 1 }, (_, round) => round).flatMap((round) => [
          rotatePass(blocks, sweep, round),
          productPass(blocks, sweep, round),
        ]),
      ),
      rankPass(blocks),
      vectorPass(blocks),
    ],
  };
};
