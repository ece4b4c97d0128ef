// The inner tile of every contraction: 6 rows × 8 columns of the result stay in twelve vector registers during the sum.
//
// Rows are read through *pointers*, one per row and segment. Therefore a single kernel reads a matrix in place, a
// transposed matrix, a packed matrix, or the pixels of an image at each tap of a convolution (an indirect GEMM: no
// column matrix is written). Columns are read from a panel packed as [sum index][8], zero-filled after the last column.
//
// Reason for 6 × 8: the relaxed build issues 12 multiply-adds, 2 panel loads and 6 splat loads per sum index. 12 + 2 +
// 1 registers are exactly the 15 that V8 leaves available (V8 reserves xmm15). GFLOP/s measured on an EPYC of the Zen 5
// family at 4.2 GHz (peak 2 × 4 × 2 × 4.19 = 67 GFLOP/s), panel and rows in L1: 6×8 67, 5×8 64, 4×8 62, 3×12 62, 2×16
// 63, 4×12 42 and 8×8 41 (both spill), 8×4 52, 6×4 48. Unrolling the sum by two reduces 6×8 to 46, because V8 hoists
// the loads of both halves and spills. Therefore the loop is not unrolled.
import { TILE_COLUMNS, TILE_ROWS } from "./blocks";
import { madd, transpose4 } from "./lanes";

/** Number of rows of a small result tile. */
const SMALL_TILE_ROWS: i32 = 4;

/**
 * Returns the size of equal blocks of at most `limit`: 784 with a limit of 512 is split into 392 + 392, not into 512 +
 * 272.
 */
// @ts-ignore: decorator
@inline
export function evenBlock(size: i32, limit: i32): i32 {
  const count = max(1, (size + limit - 1) / limit);
  return (size + count - 1) / count;
}

/**
 * Returns the number of rows of the next tile, 6 or 4, if `left` rows remain. Chooses tiles so that the fewest tile
 * rows are unused (8 = 4 + 4, 7 = 4 + 3).
 */
// @ts-ignore: decorator
@inline
export function tileRows(left: i32): i32 {
  return left <= SMALL_TILE_ROWS || left == 7 || left == 8 ? SMALL_TILE_ROWS : TILE_ROWS;
}

// @ts-ignore: decorator
@inline
function put(row: usize, low: v128, high: v128, accumulate: bool): void {
  if (accumulate) {
    low = f32x4.add(low, v128.load(row));
    high = f32x4.add(high, v128.load(row, 16));
  }
  v128.store(row, low);
  v128.store(row, high, 16);
}

function tileScalar(rows: i32, table: usize, segments: i32, inner: i32, step: usize, panel: usize, out: usize, offset: usize, accumulate: bool): void {
  for (let i = 0; i < rows; i++) {
    const row = <usize>load<u32>(out + ((<usize>i) << 2)) + offset;
    for (let j: usize = 0; j < 32; j += 4) {
      let sum: f32 = 0;
      let pointers = table + ((<usize>i) << 2);
      let b = panel + j;
      for (let s = 0; s < segments; s++) {
        let a = <usize>load<u32>(pointers);
        for (let k = 0; k < inner; k++) {
          sum += load<f32>(a) * load<f32>(b);
          a += step;
          b += 32;
        }
        pointers += (<usize>rows) << 2;
      }
      store<f32>(row + j, accumulate ? sum + load<f32>(row + j) : sum);
    }
  }
}

/**
 * Computes six rows of eight results: out[i][j] = Σ over segments s and k < inner of a(s, i, k) · panel[s · inner +
 * k][j], or adds this sum to out[i][j] if `accumulate`. a(s, i, k) is the f32 at address table[s][i] + k · step.
 *
 * `table` holds segments × 6 addresses. `step` is the number of bytes between successive terms of a row. `out` holds 6
 * addresses; the 8 floats are written `offset` bytes after each address. An edge tile uses any readable row for its
 * unused rows; its results are written to scratch, and the valid results are copied.
 */
export function tile6(table: usize, segments: i32, inner: i32, step: usize, panel: usize, out: usize, offset: usize, accumulate: bool): void {
  if (ASC_FEATURE_SIMD) {
    let c00 = f32x4.splat(0), c01 = f32x4.splat(0);
    let c10 = f32x4.splat(0), c11 = f32x4.splat(0);
    let c20 = f32x4.splat(0), c21 = f32x4.splat(0);
    let c30 = f32x4.splat(0), c31 = f32x4.splat(0);
    let c40 = f32x4.splat(0), c41 = f32x4.splat(0);
    let c50 = f32x4.splat(0), c51 = f32x4.splat(0);
    for (; segments > 0; segments--) {
      let p0 = <usize>load<u32>(table), p1 = <usize>load<u32>(table, 4), p2 = <usize>load<u32>(table, 8);
      let p3 = <usize>load<u32>(table, 12), p4 = <usize>load<u32>(table, 16), p5 = <usize>load<u32>(table, 20);
      table += 24;
      for (let k = inner; k > 0; k--) {
        const b0 = v128.load(panel), b1 = v128.load(panel, 16);
        const a0 = v128.load32_splat(p0);
        c00 = madd(a0, b0, c00);
        c01 = madd(a0, b1, c01);
        const a1 = v128.load32_splat(p1);
        c10 = madd(a1, b0, c10);
        c11 = madd(a1, b1, c11);
        const a2 = v128.load32_splat(p2);
        c20 = madd(a2, b0, c20);
        c21 = madd(a2, b1, c21);
        const a3 = v128.load32_splat(p3);
        c30 = madd(a3, b0, c30);
        c31 = madd(a3, b1, c31);
        const a4 = v128.load32_splat(p4);
        c40 = madd(a4, b0, c40);
        c41 = madd(a4, b1, c41);
        const a5 = v128.load32_splat(p5);
        c50 = madd(a5, b0, c50);
        c51 = madd(a5, b1, c51);
        p0 += step;
        p1 += step;
        p2 += step;
        p3 += step;
        p4 += step;
        p5 += step;
        panel += 32;
      }
    }
    put(<usize>load<u32>(out) + offset, c00, c01, accumulate);
    put(<usize>load<u32>(out, 4) + offset, c10, c11, accumulate);
    put(<usize>load<u32>(out, 8) + offset, c20, c21, accumulate);
    put(<usize>load<u32>(out, 12) + offset, c30, c31, accumulate);
    put(<usize>load<u32>(out, 16) + offset, c40, c41, accumulate);
    put(<usize>load<u32>(out, 20) + offset, c50, c51, accumulate);
  } else {
    tileScalar(6, table, segments, inner, step, panel, out, offset, accumulate);
  }
}

/**
 * Variant of `tile6` with four rows, for row counts that are not multiples of six. A tile of four rows needs a third
 * less work than a tile of six rows of which two are unused.
 */
export function tile4(table: usize, segments: i32, inner: i32, step: usize, panel: usize, out: usize, offset: usize, accumulate: bool): void {
  if (ASC_FEATURE_SIMD) {
    let c00 = f32x4.splat(0), c01 = f32x4.splat(0);
    let c10 = f32x4.splat(0), c11 = f32x4.splat(0);
    let c20 = f32x4.splat(0), c21 = f32x4.splat(0);
    let c30 = f32x4.splat(0), c31 = f32x4.splat(0);
    for (; segments > 0; segments--) {
      let p0 = <usize>load<u32>(table), p1 = <usize>load<u32>(table, 4), p2 = <usize>load<u32>(table, 8), p3 = <usize>load<u32>(table, 12);
      table += 16;
      for (let k = inner; k > 0; k--) {
        const b0 = v128.load(panel), b1 = v128.load(panel, 16);
        const a0 = v128.load32_splat(p0);
        c00 = madd(a0, b0, c00);
        c01 = madd(a0, b1, c01);
        const a1 = v128.load32_splat(p1);
        c10 = madd(a1, b0, c10);
        c11 = madd(a1, b1, c11);
        const a2 = v128.load32_splat(p2);
        c20 = madd(a2, b0, c20);
        c21 = madd(a2, b1, c21);
        const a3 = v128.load32_splat(p3);
        c30 = madd(a3, b0, c30);
        c31 = madd(a3, b1, c31);
        p0 += step;
        p1 += step;
        p2 += step;
        p3 += step;
        panel += 32;
      }
    }
    put(<usize>load<u32>(out) + offset, c00, c01, accumulate);
    put(<usize>load<u32>(out, 4) + offset, c10, c11, accumulate);
    put(<usize>load<u32>(out, 8) + offset, c20, c21, accumulate);
    put(<usize>load<u32>(out, 12) + offset, c30, c31, accumulate);
  } else {
    tileScalar(4, table, segments, inner, step, panel, out, offset, accumulate);
  }
}

/**
 * Copies the first `rows` rows and `columns` columns of a tile to a matrix whose rows are `stride` bytes apart, or to
 * the transposed matrix if `transposed`. Adds to the matrix if `accumulate`.
 */
export function copyTile(tile: usize, output: usize, stride: usize, rows: i32, columns: i32, transposed: bool, accumulate: bool): void {
  let first = 0;
  if (ASC_FEATURE_SIMD && transposed && !accumulate && columns == TILE_COLUMNS && rows >= SMALL_TILE_ROWS) {
    transpose4(tile, 32, output, stride);
    transpose4(tile + 16, 32, output + 4 * stride, stride);
    first = 4;
  }
  const rowStep: usize = transposed ? 4 : stride;
  const columnStep: usize = transposed ? stride : 4;
  for (let i = first; i < rows; i++) {
    let to = output + <usize>i * rowStep;
    let from = tile + ((<usize>i) << 5);
    for (let j = 0; j < columns; j++) {
      store<f32>(to, accumulate ? load<f32>(to) + load<f32>(from) : load<f32>(from));
      to += columnStep;
      from += 4;
    }
  }
}
