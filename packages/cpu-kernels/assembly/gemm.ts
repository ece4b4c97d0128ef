// Matrix products y = op(a) · op(b), or y += op(a) · op(b), f32, row-major. Either operand can be transposed.
import { COLUMN_BLOCK, INNER_BLOCK, PRODUCT_HEAD_BYTES, READ_ONCE_PANELS, ROW_BLOCK, TILE_COLUMNS, TILE_ROWS } from "./blocks";
import { transposeTile } from "./movement";
import { packPanels, packRows } from "./pack";
import { partBegin } from "./parts";
import { copyTile, evenBlock, tile4, tile6, tileRows } from "./tile";
import { combineRows, dotRows } from "./vector-product";

/**
 * Computes one matrix product with fixed roles of the operands: rows of `a` are read by address, columns of `b` from
 * packed panels. y[i][j] is at y + i · stride + 4 j, or at y + j · stride + 4 i if `swapped`.
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

/** Variant of `product` that computes only the tiles that contain an entry (i, j) with i ≤ j + `diagonal`. */
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
        // Without packing, every panel would read the rows with a step of `aInner` bytes. The rows are packed unless
        // only a few panels read them.
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
 * Computes y[rows, columns] = op(a) · op(b), or adds the product to y if `accumulate`.
 *
 * One operand is read by address and needs no preparation; the other operand, usually `b`, is packed. If packing `b`
 * would cost more, `b` is read by address and the result is written transposed. There are two such cases:
 * - `b` is transposed (its rows are contiguous along the sum), and `a` is also transposed or has fewer rows than the
 *   result has columns.
 * - `a` has so few rows that each packed value would be used only once or twice (8 × 512 × 512: 39 GFLOP/s packed, 62
 *   by address).
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
 * Computes part `part` of `parts` of `gemm`: a column range of the packed operand, or a row range of the unpacked
 * operand if the rows can be split evenly. Each sum depends only on its row, its column and `inner`. Therefore the
 * parts are bitwise identical to the complete product, and a row alone gives the same bits as in a batch.
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
  if (inner == 0) {
    if (!accumulate && part == 0) memory.fill(y, 0, <usize>rows * stride);
    return;
  }
  if (rows == 1) {
    vectorPart(a, b, y, columns, inner, transposeB, accumulate, scratch, part, parts);
    return;
  }
  if (columns == 1) {
    vectorPart(b, a, y, rows, inner, !transposeA, accumulate, scratch, part, parts);
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

/** Number of results in a cache line. Threads that write to the same line slow each other down. */
const LINE_RESULTS: i32 = 16;

/**
 * Computes a part of the product of the vector `x` [inner] and a matrix, [outer, inner] if `rowsAreSums`, otherwise
 * [inner, outer]. The matrix is read once, so memory bandwidth is the limit, and packing would double the traffic.
 */
// @ts-ignore: decorator
@inline
function vectorPart(
  x: usize, matrix: usize, y: usize, outer: i32, inner: i32, rowsAreSums: bool, accumulate: bool, scratch: usize,
  part: i32, parts: i32,
): void {
  const lines = (outer + LINE_RESULTS - 1) / LINE_RESULTS;
  const first = partBegin(lines, part, parts) * LINE_RESULTS;
  const count = min(outer, partBegin(lines, part + 1, parts) * LINE_RESULTS) - first;
  if (count <= 0) return;
  const from = <usize>first << 2;
  if (rowsAreSums) dotRows(matrix + from * <usize>inner, x, y + from, count, inner, accumulate);
  else combineRows(x, matrix + from, <usize>outer << 2, y + from, count, inner, accumulate, scratch);
}

/**
 * Minimum number of panels per part at which parts get complete panels, even if some parts get one panel more than
 * others. With fewer panels, this imbalance would matter, and the rows are split instead.
 */
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
 * Computes a part of `xᵀx` [n, n], or of `xxᵀ` if not `transposed`, with about half the work of `gemm`. The result is
 * bitwise identical to the result of `gemm`, because multiplication is commutative. Computes the entries on and above
 * the diagonal, and copies each column to the corresponding row. All parts have about as many entries above the
 * diagonal.
 */
function gramPart(x: usize, y: usize, n: i32, inner: i32, transposed: bool, scratch: usize, part: i32, parts: i32): void {
  const stride = (<usize>n) << 2;
  const panels = (n + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const first = triangleBegin(panels, part, parts) * TILE_COLUMNS;
  const last = min(n, triangleBegin(panels, part + 1, parts) * TILE_COLUMNS);
  if (first >= last) return;
  const side: usize = transposed ? 4 : (<usize>inner) << 2;
  const along: usize = transposed ? stride : 4;
  // Omit rows after `last`, because overlapping tiles would add to the rows of the next part.
  productAbove(
    first, x, side, along, x + <usize>first * side, side, along, y + ((<usize>first) << 2), stride,
    last, last - first, inner, false, false, scratch,
  );
  for (let j = first; j < last; j += TILE_COLUMNS)
    transposeTile<f32>(y + <usize>j * stride, stride, y + ((<usize>j) << 2), stride, j, min(TILE_COLUMNS, last - j));
}

/**
 * Returns the index of the first panel of a part of a triangular matrix. Parts have about equal areas instead of equal
 * widths, because later columns of the upper triangle are longer.
 */
// @ts-ignore: decorator
@inline
function triangleBegin(panels: i32, part: i32, parts: i32): i32 {
  return <i32>Math.round(<f64>panels * Math.sqrt(<f64>part / <f64>parts));
}

/** Computes `gemm` for `batch` products with consecutive operands and results. */
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

/** Computes the product by its definition with three loops. Reference for tests of `gemm`. */
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
