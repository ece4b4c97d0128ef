// Copies of operands, packed in the order in which tiles read them.
import { TILE_COLUMNS } from "./blocks";
import { transpose4 } from "./lanes";

/**
 * Packs a matrix of `columns` × `inner` into panels [inner][8], `panelBytes` apart. Columns after the last are filled
 * with zeros. No result depends on these zeros, but old subnormals or NaNs in unused lanes would make the run time
 * depend on earlier computations. `columnStep` and `innerStep` are in bytes; one of them is 4 in the fast case.
 */
export function packPanels(
  from: usize,
  columnStep: usize,
  innerStep: usize,
  columns: i32,
  inner: i32,
  panels: usize,
  panelBytes: usize,
): void {
  for (let j = 0; j < columns; j += TILE_COLUMNS) {
    let to = panels;
    panels += panelBytes;
    const width = min(TILE_COLUMNS, columns - j);
    const source = from + <usize>j * columnStep;
    let k = 0;
    if (ASC_FEATURE_SIMD && width == TILE_COLUMNS) {
      if (columnStep == 4) {
        let row = source;
        for (; k < inner; k++) {
          v128.store(to, v128.load(row));
          v128.store(to, v128.load(row, 16), 16);
          row += innerStep;
          to += 32;
        }
      } else if (innerStep == 4) {
        for (; k + 4 <= inner; k += 4) {
          const at = source + ((<usize>k) << 2);
          transpose4(at, columnStep, to, 32);
          transpose4(at + 4 * columnStep, columnStep, to + 16, 32);
          to += 128;
        }
      }
    }
    for (; k < inner; k++) {
      let at = source + <usize>k * innerStep;
      let i: i32 = 0;
      for (; i < width; i++) {
        store<f32>(to + ((<usize>i) << 2), load<f32>(at));
        at += columnStep;
      }
      for (; i < TILE_COLUMNS; i++) store<f32>(to + ((<usize>i) << 2), 0);
      to += 32;
    }
  }
}

/**
 * Packs a tile of `rows` ≤ `tile` adjacent rows of a transposed operand as [inner][tile]. Missing rows repeat the last
 * row.
 */
export function packRows(from: usize, innerStep: usize, rows: i32, tile: i32, inner: i32, to: usize): void {
  const bytes = (<usize>tile) << 2;
  if (ASC_FEATURE_SIMD && rows == tile) {
    if (tile == 6) {
      for (let k = 0; k < inner; k++) {
        v128.store(to, v128.load(from));
        store<u64>(to, load<u64>(from, 16), 16);
        from += innerStep;
        to += bytes;
      }
    } else {
      for (let k = 0; k < inner; k++) {
        v128.store(to, v128.load(from));
        from += innerStep;
        to += bytes;
      }
    }
    return;
  }
  for (let k = 0; k < inner; k++) {
    for (let i = 0; i < tile; i++) store<f32>(to + ((<usize>i) << 2), load<f32>(from + ((<usize>min(i, rows - 1)) << 2)));
    from += innerStep;
    to += bytes;
  }
}
