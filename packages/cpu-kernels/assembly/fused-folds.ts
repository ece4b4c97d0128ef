// Reductions of the lanes that a fused program has just computed, while they are in the cache.
import { packLanes } from "./bits";
import * as Fold from "./fused-fold";
import { maxF32, maxMagnitudes, minF32 } from "./reduce";
import { sumBlocks, sumF32, sumMagnitudes, sumMagnitudesBlocks } from "./sum";

/** Returns the number of set masks among `n` masks. */
function countMasks(masks: usize, n: i32): i32 {
  let count = 0;
  if (ASC_FEATURE_SIMD) {
    let a = i32x4.splat(0);
    let b = a;
    for (; n >= 8; n -= 8, masks += 32) {
      a = i32x4.sub(a, v128.load(masks));
      b = i32x4.sub(b, v128.load(masks, 16));
    }
    a = i32x4.add(a, b);
    count = i32x4.extract_lane(a, 0) + i32x4.extract_lane(a, 1) + (i32x4.extract_lane(a, 2) + i32x4.extract_lane(a, 3));
  }
  for (; n > 0; n--, masks += 4) count -= load<i32>(masks);
  return count;
}

/**
 * Folds the `n` lanes of a tile at address `x`, which begins with element `first` of the fold's input. If a row of
 * `size` elements fits in a tile (at most `most` lanes), the tile holds complete rows. Otherwise the tile is a section
 * of one row, and the 8 bytes at `total` carry the f64 sum from one section to the next. `output` is the address of the
 * result of row 0.
 */
export function foldLanes(fold: i32, x: usize, n: i32, first: i32, size: i32, most: i32, output: usize, total: usize): void {
  const row = <usize>(first / size);
  if (size <= most) {
    const rows = n / size;
    if (fold == Fold.Sum) sumF32(x, output + (row << 2), rows, size, 1, 0);
    else if (fold == Fold.Max) maxF32(x, output + (row << 2), rows, size, 1);
    else if (fold == Fold.Min) minF32(x, output + (row << 2), rows, size, 1);
    else if (fold == Fold.SumMagnitudes) sumMagnitudes(x, output + (row << 2), rows, size);
    else if (fold == Fold.MaxMagnitudes) maxMagnitudes(x, output + (row << 2), rows, size);
    else if (fold == Fold.Count) {
      for (let r = 0; r < rows; r++) store<f32>(output + ((row + r) << 2), <f32>countMasks(x + ((<usize>(r * size)) << 2), size));
    } else packLanes(x, output + ((row * <usize>((size + 31) >> 5)) << 2), rows, size);
    return;
  }
  const column = first % size;
  if (fold == Fold.Bits) {
    packLanes(x, output + ((row * <usize>((size + 31) >> 5) + <usize>(column >> 5)) << 2), 1, n);
  } else if (fold == Fold.Sum || fold == Fold.SumMagnitudes || fold == Fold.Count) {
    const part =
      fold == Fold.Sum ? sumBlocks(x, n) : fold == Fold.SumMagnitudes ? sumMagnitudesBlocks(x, n) : <f64>countMasks(x, n);
    const sum = (column == 0 ? 0 : load<f64>(total)) + part;
    store<f64>(total, sum);
    if (column + n == size) store<f32>(output + (row << 2), <f32>sum);
  } else {
    if (fold == Fold.Max) maxF32(x, total, 1, n, 1);
    else if (fold == Fold.MaxMagnitudes) maxMagnitudes(x, total, 1, n);
    else minF32(x, total, 1, n, 1);
    const at = output + (row << 2);
    const part = load<f32>(total);
    if (column == 0) store<f32>(at, part);
    else store<f32>(at, fold == Fold.Min ? min<f32>(load<f32>(at), part) : max<f32>(load<f32>(at), part));
  }
}
