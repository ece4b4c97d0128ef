// Matrix products: y (+)= op(a) · op(b), f32, row-major, either operand transposed.
import { COLUMN_BLOCK, INNER_BLOCK, PRODUCT_HEAD_BYTES, ROW_BLOCK, TILE_COLUMNS, TILE_ROWS } from "./blocks";
import { packPanels, packRows } from "./pack";
import { copyTile, evenBlock, tile4, tile6, tileRows } from "./tile";

/**
 * One product with the roles settled: rows come from `a` by address, columns from packed panels of `b`.
 * y[i][j] of the roles lies at y + i · stride + 4 j, or, when `swapped`, at y + j · stride + 4 i.
 */
function product(
  a: usize, aRow: usize, aInner: usize, b: usize, bColumn: usize, bInner: usize,
  y: usize, stride: usize, rows: i32, columns: i32, inner: i32, swapped: bool, accumulate: bool, scratch: usize,
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
      for (let i0 = 0; i0 < rows; i0 += rowBlock) {
        const tall = min(rowBlock, rows - i0);
        // Rows that lie side by side would be read `aInner` bytes apart by every panel: copy them together unless few panels read them.
        const packing = aRow == 4 && aInner != 4 && wide > 2 * TILE_COLUMNS;
        if (packing) {
          for (let i = 0; i < tall;) {
            const take = tileRows(tall - i);
            const there = min(take, tall - i);
            packRows(a + <usize>k0 * aInner + <usize>(i0 + i) * aRow, aInner, there, take, depth, packed + ((<usize>(i * depth)) << 2));
            i += there;
          }
        }
        for (let j = 0; j < wide; j += TILE_COLUMNS) {
          const panel = panels + ((<usize>(j * depth)) << 2);
          const width = min(TILE_COLUMNS, wide - j);
          for (let i = 0; i < tall;) {
            const take = tileRows(tall - i);
            const there = min(take, tall - i);
            const first = packing ? packed + ((<usize>(i * depth)) << 2) : a + <usize>k0 * aInner + <usize>(i0 + i) * aRow;
            const step = packing ? (<usize>take) << 2 : aInner;
            const rowStep: usize = packing ? 4 : aRow;
            for (let r = 0; r < take; r++) store<u32>(table + ((<usize>r) << 2), <u32>(first + <usize>min(r, there - 1) * rowStep));
            const corner = swapped ? y + <usize>(j0 + j) * stride + ((<usize>(i0 + i)) << 2) : y + <usize>(i0 + i) * stride + ((<usize>(j0 + j)) << 2);
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
 * y[rows, columns] = op(a) · op(b), or += when `accumulate`.
 *
 * The operand that is read by address costs nothing to prepare, the other one is packed; so a transposed `b` (its rows run along the
 * sum) takes the row role when it is the larger one, and the result is written transposed.
 */
export function gemm(
  a: usize, b: usize, y: usize, rows: i32, columns: i32, inner: i32, transposeA: bool, transposeB: bool, accumulate: bool, scratch: usize,
): void {
  const stride = (<usize>columns) << 2;
  if (inner == 0) {
    if (!accumulate) memory.fill(y, 0, <usize>rows * stride);
    return;
  }
  const aRow: usize = transposeA ? 4 : (<usize>inner) << 2;
  const aInner: usize = transposeA ? (<usize>rows) << 2 : 4;
  const bColumn: usize = transposeB ? (<usize>inner) << 2 : 4;
  const bInner: usize = transposeB ? 4 : stride;
  if (transposeB && (transposeA || rows < columns)) {
    product(b, bColumn, bInner, a, aRow, aInner, y, stride, columns, rows, inner, true, accumulate, scratch);
  } else {
    product(a, aRow, aInner, b, bColumn, bInner, y, stride, rows, columns, inner, false, accumulate, scratch);
  }
}

/** `gemm` over `batch` products whose operands and results lie one after the other. */
export function gemmBatched(
  a: usize, b: usize, y: usize, batch: i32, rows: i32, columns: i32, inner: i32, transposeA: bool, transposeB: bool, scratch: usize,
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
