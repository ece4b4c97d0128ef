// Matrix products: y (+)= op(a) · op(b), f32, row-major, either operand transposed.
import { COLUMN_BLOCK, INNER_BLOCK, PRODUCT_HEAD_BYTES, READ_ONCE_PANELS, ROW_BLOCK, TILE_COLUMNS, TILE_ROWS } from "./blocks";
import { madd, sumLanes } from "./lanes";
import { transposeTile } from "./movement";
import { packPanels, packRows } from "./pack";
import { partBegin } from "./parts";
import { copyTile, evenBlock, tile4, tile6, tileRows } from "./tile";

/**
 * One product with the roles settled: rows come from `a` by address, columns from packed panels of `b`.
 * y[i][j] of the roles lies at y + i · stride + 4 j, or, when `swapped`, at y + j · stride + 4 i.
 */
export function product(
  a: usize,
  aRow: usize,
  aInner: usize,
  b: usize,
  bColumn: usize,
  bInner: usize,
  y: usize,
  stride: usize,
  rows: i32,
  columns: i32,
  inner: i32,
  swapped: bool,
  accumulate: bool,
  scratch: usize,
): void {
  productAbove(rows, a, aRow, aInner, b, bColumn, bInner, y, stride, rows, columns, inner, swapped, accumulate, scratch);
}

/** `product`, of which the tiles matter that reach a row i ≤ j + `diagonal`: those below are not computed. */
function productAbove(
  diagonal: i32,
  a: usize,
  aRow: usize,
  aInner: usize,
  b: usize,
  bColumn: usize,
  bInner: usize,
  y: usize,
  stride: usize,
  rows: i32,
  columns: i32,
  inner: i32,
  swapped: bool,
  accumulate: bool,
  scratch: usize,
): void {
  const table = scratch;
  const out = scratch + 32;
  const edge = scratch + 64;
  const tile = scratch + 96;
  for (let r: usize = 0; r < 6; r++) store<u32>(edge + (r << 2), <u32>(tile + (r << 5)));
  const innerBlock = evenBlock(inner, INNER_BLOCK);
  const columnBlock = (evenBlock(columns, COLUMN_BLOCK) + 7) & ~7;
  const rowBlock = evenBlock(rows, ROW_BLOCK);
  const panels = scratch + PRODUCT_HEAD_BYTES;
  const packed = panels + ((<usize>(innerBlock * columnBlock)) << 2);
  for (let k0 = 0; k0 < inner; k0 += innerBlock) {
    const depth = min(innerBlock, inner - k0);
    const adding = accumulate || k0 > 0;
    for (let j0 = 0; j0 < columns; j0 += columnBlock) {
      const wide = min(columnBlock, columns - j0);
      packPanels(b + <usize>k0 * bInner + <usize>j0 * bColumn, bColumn, bInner, wide, depth, panels, (<usize>depth) << 5);
      const lowest = min(rows, diagonal + j0 + wide);
      for (let i0 = 0; i0 < lowest; i0 += rowBlock) {
        const tall = min(rowBlock, lowest - i0);
        // Rows that lie side by side would be read `aInner` bytes apart by every panel: copy them together unless few
        // panels read them.
        const packing = aRow == 4 && aInner != 4 && wide > READ_ONCE_PANELS * TILE_COLUMNS;
        if (packing) {
          for (let i = 0; i < tall; ) {
            const take = tileRows(tall - i);
            const there = min(take, tall - i);
            packRows(a + <usize>k0 * aInner + <usize>(i0 + i) * aRow, aInner, there, take, depth, packed + ((<usize>(i * depth)) << 2));
            i += there;
          }
        }
        for (let j = 0; j < wide; j += TILE_COLUMNS) {
          const panel = panels + ((<usize>(j * depth)) << 2);
          const width = min(TILE_COLUMNS, wide - j);
          const end = min(tall, diagonal + j0 + j + width - i0);
          for (let i = 0; i < end; ) {
            const take = tileRows(tall - i);
            const there = min(take, tall - i);
            const first = packing ? packed + ((<usize>(i * depth)) << 2) : a + <usize>k0 * aInner + <usize>(i0 + i) * aRow;
            const step = packing ? (<usize>take) << 2 : aInner;
            const rowStep: usize = packing ? 4 : aRow;
            for (let r = 0; r < take; r++) store<u32>(table + ((<usize>r) << 2), <u32>(first + <usize>min(r, there - 1) * rowStep));
            const corner = swapped
              ? y + <usize>(j0 + j) * stride + ((<usize>(i0 + i)) << 2)
              : y + <usize>(i0 + i) * stride + ((<usize>(j0 + j)) << 2);
            const whole = width == TILE_COLUMNS && there == take && !swapped;
            if (whole) for (let r = 0; r < take; r++) store<u32>(out + ((<usize>r) << 2), <u32>(corner + <usize>r * stride));
            const target = whole ? out : edge;
            if (take == TILE_ROWS) tile6(table, 1, depth, step, panel, target, 0, adding && whole);
            else tile4(table, 1, depth, step, panel, target, 0, adding && whole);
            if (!whole) copyTile(tile, corner, stride, there, width, swapped, adding);
            i += there;
          }
        }
      }
    }
  }
}

/**
 * y[n] (+)= Σₖ x[k] · b[k][n]: four rows of `b` at a time are streamed once, in order, and added to `y`, which stays
 * near.
 */
function combineRows(x: usize, b: usize, y: usize, columns: i32, inner: i32, accumulate: bool): void {
  const bytes = (<usize>columns) << 2;
  if (!accumulate) memory.fill(y, 0, bytes);
  let k = 0;
  if (ASC_FEATURE_SIMD) {
    for (; k + 4 <= inner; k += 4) {
      const x0 = v128.load32_splat(x),
        x1 = v128.load32_splat(x, 4),
        x2 = v128.load32_splat(x, 8),
        x3 = v128.load32_splat(x, 12);
      const row1 = b + bytes,
        row2 = row1 + bytes,
        row3 = row2 + bytes;
      let j: usize = 0;
      for (; j + 16 <= bytes; j += 16) {
        const even = madd(x2, v128.load(row2 + j), madd(x0, v128.load(b + j), v128.load(y + j)));
        const odd = madd(x3, v128.load(row3 + j), f32x4.mul(x1, v128.load(row1 + j)));
        v128.store(y + j, f32x4.add(even, odd));
      }
      for (; j < bytes; j += 4) {
        const even = load<f32>(x) * load<f32>(b + j) + load<f32>(x, 8) * load<f32>(row2 + j);
        const odd = load<f32>(x, 4) * load<f32>(row1 + j) + load<f32>(x, 12) * load<f32>(row3 + j);
        store<f32>(y + j, load<f32>(y + j) + even + odd);
      }
      x += 16;
      b = row3 + bytes;
    }
  }
  for (; k < inner; k++) {
    for (let j: usize = 0; j < bytes; j += 4) store<f32>(y + j, load<f32>(y + j) + load<f32>(x) * load<f32>(b + j));
    x += 4;
    b += bytes;
  }
}

/** y[m] (+)= Σₖ a[m][k] · x[k]: four rows share each load of `x`. */
function dotRows(a: usize, x: usize, y: usize, rows: i32, inner: i32, accumulate: bool): void {
  const bytes = (<usize>inner) << 2;
  let m = 0;
  if (ASC_FEATURE_SIMD) {
    for (; m + 4 <= rows; m += 4) {
      let s0 = f32x4.splat(0),
        s1 = f32x4.splat(0),
        s2 = f32x4.splat(0),
        s3 = f32x4.splat(0);
      const row1 = a + bytes,
        row2 = row1 + bytes,
        row3 = row2 + bytes;
      let k: usize = 0;
      for (; k + 16 <= bytes; k += 16) {
        const v = v128.load(x + k);
        s0 = madd(v, v128.load(a + k), s0);
        s1 = madd(v, v128.load(row1 + k), s1);
        s2 = madd(v, v128.load(row2 + k), s2);
        s3 = madd(v, v128.load(row3 + k), s3);
      }
      let t0 = sumLanes(s0),
        t1 = sumLanes(s1),
        t2 = sumLanes(s2),
        t3 = sumLanes(s3);
      for (; k < bytes; k += 4) {
        const v = load<f32>(x + k);
        t0 += v * load<f32>(a + k);
        t1 += v * load<f32>(row1 + k);
        t2 += v * load<f32>(row2 + k);
        t3 += v * load<f32>(row3 + k);
      }
      if (accumulate) {
        t0 += load<f32>(y);
        t1 += load<f32>(y, 4);
        t2 += load<f32>(y, 8);
        t3 += load<f32>(y, 12);
      }
      store<f32>(y, t0);
      store<f32>(y, t1, 4);
      store<f32>(y, t2, 8);
      store<f32>(y, t3, 12);
      a = row3 + bytes;
      y += 16;
    }
  }
  for (; m < rows; m++) {
    let k: usize = 0;
    let sum: f32 = accumulate ? load<f32>(y) : 0;
    if (ASC_FEATURE_SIMD) {
      let s = f32x4.splat(0);
      for (; k + 16 <= bytes; k += 16) s = madd(v128.load(x + k), v128.load(a + k), s);
      sum += sumLanes(s);
    }
    for (; k < bytes; k += 4) sum += load<f32>(x + k) * load<f32>(a + k);
    store<f32>(y, sum);
    a += bytes;
    y += 4;
  }
}

/**
 * y[rows, columns] = op(a) · op(b), or += when `accumulate`.
 *
 * The operand that is read by address costs nothing to prepare, the other one is packed. So `b` takes the row role, and
 * the result is written transposed, where packing it would cost more: transposed and larger than `a` (its rows then run
 * along the sum), or so few rows in `a` that each packed value would be used once or twice (8 × 512 × 512: 39 GFLOP/s
 * packed, 62 by address).
 */
export function gemm(
  a: usize,
  b: usize,
  y: usize,
  rows: i32,
  columns: i32,
  inner: i32,
  transposeA: bool,
  transposeB: bool,
  accumulate: bool,
  scratch: usize,
): void {
  gemmPart(a, b, y, rows, columns, inner, transposeA, transposeB, accumulate, scratch, 0, 1);
}

/**
 * Part `part` of `parts` of `gemm`: some of the columns of the packed operand, or of the rows of the other one where
 * those cut evenly. An element's sum does not depend on where its tile lies, so the parts write the bits of the whole.
 */
export function gemmPart(
  a: usize,
  b: usize,
  y: usize,
  rows: i32,
  columns: i32,
  inner: i32,
  transposeA: bool,
  transposeB: bool,
  accumulate: bool,
  scratch: usize,
  part: i32,
  parts: i32,
): void {
  const stride = (<usize>columns) << 2;
  if ((inner == 0 || rows == 1 || columns == 1) && part > 0) return; // the first part does it all
  if (inner == 0) {
    if (!accumulate) memory.fill(y, 0, <usize>rows * stride);
    return;
  }
  // One row or column: a matrix is read once, so memory sets the pace and packing would double the traffic.
  if (rows == 1) {
    if (transposeB) dotRows(b, a, y, columns, inner, accumulate);
    else combineRows(a, b, y, columns, inner, accumulate);
    return;
  }
  if (columns == 1) {
    if (transposeA) combineRows(b, a, y, rows, inner, accumulate);
    else dotRows(a, b, y, rows, inner, accumulate);
    return;
  }
  if (a == b && transposeA != transposeB && rows == columns && !accumulate) {
    gramPart(a, y, rows, inner, transposeA, scratch, part, parts);
    return;
  }
  const aRow: usize = transposeA ? 4 : (<usize>inner) << 2;
  const aInner: usize = transposeA ? (<usize>rows) << 2 : 4;
  const bColumn: usize = transposeB ? (<usize>inner) << 2 : 4;
  const bInner: usize = transposeB ? 4 : stride;
  if (transposeB ? transposeA || rows < columns : rows <= READ_ONCE_PANELS * TILE_COLUMNS && rows < columns) {
    productPart(b, bColumn, bInner, a, aRow, aInner, y, stride, columns, rows, inner, true, accumulate, scratch, part, parts);
  } else {
    productPart(a, aRow, aInner, b, bColumn, bInner, y, stride, rows, columns, inner, false, accumulate, scratch, part, parts);
  }
}

/** Panels per part from which one more or less is no matter. */
const MANY_PANELS: i32 = 4;

// @ts-ignore: decorator
@inline
function productPart(
  a: usize, aRow: usize, aInner: usize, b: usize, bColumn: usize, bInner: usize, y: usize, stride: usize,
  rows: i32, columns: i32, inner: i32, swapped: bool, accumulate: bool, scratch: usize, part: i32, parts: i32,
): void {
  const panels = (columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const byColumns = panels % parts == 0 || panels >= MANY_PANELS * parts;
  const firstColumn = byColumns ? partBegin(panels, part, parts) * TILE_COLUMNS : 0;
  const lastColumn = byColumns ? min(columns, partBegin(panels, part + 1, parts) * TILE_COLUMNS) : columns;
  const firstRow = byColumns ? 0 : partBegin(rows, part, parts);
  const lastRow = byColumns ? rows : partBegin(rows, part + 1, parts);
  if (firstRow == lastRow) return;
  const across = <usize>firstColumn * (swapped ? stride : 4);
  const down = <usize>firstRow * (swapped ? 4 : stride);
  product(
    a + <usize>firstRow * aRow, aRow, aInner, b + <usize>firstColumn * bColumn, bColumn, bInner, y + across + down, stride,
    lastRow - firstRow, lastColumn - firstColumn, inner, swapped, accumulate, scratch,
  );
}

/**
 * Part of `xᵀx` [n, n], or of `xxᵀ` when not `transposed`: about half of the work of a product, with its bits, since
 * both orders of a pair of factors give one number. Columns from the diagonal up are computed and written into their
 * rows, too; a part has columns with as many numbers above the diagonal as those of another.
 */
function gramPart(x: usize, y: usize, n: i32, inner: i32, transposed: bool, scratch: usize, part: i32, parts: i32): void {
  const stride = (<usize>n) << 2;
  const panels = (n + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const first = triangleBegin(panels, part, parts) * TILE_COLUMNS;
  const last = min(n, triangleBegin(panels, part + 1, parts) * TILE_COLUMNS);
  if (first >= last) return;
  const side: usize = transposed ? 4 : (<usize>inner) << 2;
  const along: usize = transposed ? stride : 4;
  // No rows after `last`: tiles that reach over would add to what the next part writes there.
  productAbove(
    first, x, side, along, x + <usize>first * side, side, along, y + ((<usize>first) << 2), stride,
    last, last - first, inner, false, false, scratch,
  );
  for (let j = first; j < last; j += TILE_COLUMNS)
    transposeTile<f32>(y + <usize>j * stride, stride, y + ((<usize>j) << 2), stride, j, min(TILE_COLUMNS, last - j));
}

/** First panel of a part: so many columns of a triangle, which grow longer, hold as much as those of another. */
// @ts-ignore: decorator
@inline
function triangleBegin(panels: i32, part: i32, parts: i32): i32 {
  return <i32>Math.round(<f64>panels * Math.sqrt(<f64>part / <f64>parts));
}

/** `gemm` over `batch` products whose operands and results lie one after the other. */
export function gemmBatched(
  a: usize,
  b: usize,
  y: usize,
  batch: i32,
  rows: i32,
  columns: i32,
  inner: i32,
  transposeA: bool,
  transposeB: bool,
  scratch: usize,
): void {
  for (let i = 0; i < batch; i++) {
    gemm(a, b, y, rows, columns, inner, transposeA, transposeB, false, scratch);
    a += (<usize>(rows * inner)) << 2;
    b += (<usize>(inner * columns)) << 2;
    y += (<usize>(rows * columns)) << 2;
  }
}

/** The definition, three loops; what the kernel above is tested against. */
export function gemmNaive(a: usize, b: usize, y: usize, rows: i32, columns: i32, inner: i32, transposeA: bool, transposeB: bool): void {
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      let sum: f32 = 0;
      for (let k = 0; k < inner; k++) {
        const atA = transposeA ? k * rows + i : i * inner + k;
        const atB = transposeB ? j * inner + k : k * columns + j;
        sum += load<f32>(a + ((<usize>atA) << 2)) * load<f32>(b + ((<usize>atB) << 2));
      }
      store<f32>(y + ((<usize>(i * columns + j)) << 2), sum);
    }
  }
}
