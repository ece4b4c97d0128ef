// Layer and root-mean-square normalization over rows of `width` f32.
import { NORM_BLOCK_ROWS } from "./blocks";
import { BLOCK_BYTES, madd, sumLanes } from "./lanes";
import { partBegin } from "./parts";
import { sumRow } from "./sum";

/** Returns Σ (x − centre)² over the entries of a block. */
// @ts-ignore: decorator
@inline
function sumOfBlockSquares(row: usize, bytes: usize, centre: f32): f32 {
  let total: f32 = 0;
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    const centres = f32x4.splat(centre);
    let even = f32x4.splat(0);
    let odd = f32x4.splat(0);
    for (; i + 32 <= bytes; i += 32) {
      const a = f32x4.sub(v128.load(row + i), centres);
      const b = f32x4.sub(v128.load(row + i, 16), centres);
      even = madd(a, a, even);
      odd = madd(b, b, odd);
    }
    for (; i + 16 <= bytes; i += 16) {
      const a = f32x4.sub(v128.load(row + i), centres);
      even = madd(a, a, even);
    }
    total = sumLanes(f32x4.add(even, odd));
  }
  for (; i < bytes; i += 4) {
    const a = load<f32>(row + i) - centre;
    total += a * a;
  }
  return total;
}

function sumOfLongSquares(row: usize, bytes: usize, centre: f32): f32 {
  let total: f64 = 0;
  for (let i: usize = 0; i < bytes; i += BLOCK_BYTES) total += <f64>sumOfBlockSquares(row + i, min(BLOCK_BYTES, bytes - i), centre);
  return <f32>total;
}

// @ts-ignore: decorator
@inline
function sumOfSquares(row: usize, bytes: usize, centre: f32): f32 {
  return bytes <= BLOCK_BYTES ? sumOfBlockSquares(row, bytes, centre) : sumOfLongSquares(row, bytes, centre);
}

/** Returns Σ (x − centre) over the entries of a block. */
// @ts-ignore: decorator
@inline
function sumOfBlockDeviations(row: usize, bytes: usize, centre: f32): f32 {
  let total: f32 = 0;
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    const centres = f32x4.splat(centre);
    let lanes = f32x4.splat(0);
    for (; i + 16 <= bytes; i += 16) lanes = f32x4.add(lanes, f32x4.sub(v128.load(row + i), centres));
    total = sumLanes(lanes);
  }
  for (; i < bytes; i += 4) total += load<f32>(row + i) - centre;
  return total;
}

/** Returns the rounding error of the mean of a row, given the rounded mean. Cost: one pass over the row. */
function restOfMean(row: usize, width: i32, mean: f32): f32 {
  const bytes = <usize>width << 2;
  let total: f64 = 0;
  for (let i: usize = 0; i < bytes; i += BLOCK_BYTES) total += <f64>sumOfBlockDeviations(row + i, min(BLOCK_BYTES, bytes - i), mean);
  return <f32>(total / <f64>width);
}

/**
 * Ratio of the mean to the standard deviation above which the rounding error of the mean is corrected. Below this
 * ratio, the rounding error is about 1e-6 of a standard deviation.
 */
const FAR_FROM_ZERO: f32 = 16;

/**
 * Computes `(x − mean) · rstd · gamma + beta` per row. Stores the mean and rstd of each row. Needs two passes over a
 * row, because a plain sum of squares would lose precision by cancellation, and one more pass if the mean is far from
 * zero.
 */
export function layerNorm(y: usize, means: usize, rstds: usize, x: usize, gamma: usize, beta: usize, rows: i32, width: i32, epsilon: f32): void {
  const bytes = <usize>width << 2;
  for (let row = 0; row < rows; row++) {
    const mean = sumRow(x, width) / <f32>width;
    const variance = sumOfSquares(x, bytes, mean) / <f32>width;
    let rstd = <f32>1 / sqrt<f32>(variance + epsilon);
    let rest: f32 = 0;
    if (abs<f32>(mean) * rstd > FAR_FROM_ZERO) {
      rest = restOfMean(x, width, mean);
      rstd = <f32>1 / sqrt<f32>(max<f32>(variance - rest * rest, 0) + epsilon);
    }
    store<f32>(means + (<usize>row << 2), mean + rest);
    store<f32>(rstds + (<usize>row << 2), rstd);
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) {
        const deviation = f32x4.sub(f32x4.sub(v128.load(x + i), f32x4.splat(mean)), f32x4.splat(rest));
        const normal = f32x4.mul(deviation, f32x4.splat(rstd));
        v128.store(y + i, madd(normal, v128.load(gamma + i), v128.load(beta + i)));
      }
    }
    for (; i < bytes; i += 4) {
      const normal = (load<f32>(x + i) - mean - rest) * rstd;
      store<f32>(y + i, normal * load<f32>(gamma + i) + load<f32>(beta + i));
    }
    x += bytes;
    y += bytes;
  }
}

/** Computes `x · rstd · gamma` per row. Stores the rstd of each row. */
export function rmsNorm(y: usize, rstds: usize, x: usize, gamma: usize, rows: i32, width: i32, epsilon: f32): void {
  const bytes = <usize>width << 2;
  for (let row = 0; row < rows; row++) {
    const rstd = <f32>1 / sqrt<f32>(sumOfSquares(x, bytes, 0) / <f32>width + epsilon);
    store<f32>(rstds + (<usize>row << 2), rstd);
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) v128.store(y + i, f32x4.mul(f32x4.mul(v128.load(x + i), f32x4.splat(rstd)), v128.load(gamma + i)));
    }
    for (; i < bytes; i += 4) store<f32>(y + i, load<f32>(x + i) * rstd * load<f32>(gamma + i));
    x += bytes;
    y += bytes;
  }
}

/** Adds the sums in `partial` to `total`, element by element, and sets `partial` to zero. */
// @ts-ignore: decorator
@inline
function flush(total: usize, partial: usize, bytes: usize): void {
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    for (; i + 16 <= bytes; i += 16) v128.store(total + i, f32x4.add(v128.load(total + i), v128.load(partial + i)));
  }
  for (; i < bytes; i += 4) store<f32>(total + i, load<f32>(total + i) + load<f32>(partial + i));
  memory.fill(partial, 0, bytes);
}

/**
 * Number of row blocks per group. Terms are summed within a block of rows, then within a group of 64 blocks, then over
 * all groups. The rounding error over n terms grows like 128 + n/4096 instead of n.
 */
const GROUP_BLOCKS: i32 = 64;
const BLOCK_ROWS: i32 = NORM_BLOCK_ROWS;
const GROUP_ROWS: i32 = GROUP_BLOCKS * BLOCK_ROWS;

/**
 * Computes the row gradients `dx` of part `part` of `parts`. Writes the sums for gamma and beta over each block of rows
 * to `sums`.
 */
// @ts-ignore: decorator
@inline
function backwardRows(
  centred: bool, dx: usize, sums: usize, x: usize, gamma: usize, means: usize, rstds: usize, g: usize, rows: i32, width: i32, part: i32, parts: i32,
): void {
  const bytes = <usize>width << 2;
  const blockBytes = centred ? 2 * bytes : bytes;
  const long = bytes > BLOCK_BYTES; // if the row is not long, one block is the complete row
  const blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const begin = partBegin(blocks, part, parts) * BLOCK_ROWS;
  const end = min(rows, partBegin(blocks, part + 1, parts) * BLOCK_ROWS);
  x += <usize>begin * bytes;
  g += <usize>begin * bytes;
  dx += <usize>begin * bytes;
  let partialGamma: usize = 0;
  let partialBeta: usize = 0;
  for (let row = begin; row < end; row++) {
    if (row % BLOCK_ROWS == 0) {
      partialGamma = sums + <usize>(row / BLOCK_ROWS) * blockBytes;
      partialBeta = partialGamma + bytes;
      memory.fill(partialGamma, 0, blockBytes);
    }
    const at = <usize>row << 2;
    const mean: f32 = centred ? load<f32>(means + at) : 0;
    const rstd = load<f32>(rstds + at);
    const rest: f32 = centred && abs<f32>(mean) * rstd > FAR_FROM_ZERO ? restOfMean(x, width, mean) : 0;
    const shift = -rest * rstd;
    let sumH: f32 = 0;
    let sumHN: f32 = 0;
    let wideH: f64 = 0;
    let wideHN: f64 = 0;
    let i: usize = 0;
    do {
      const end = long ? min(bytes, i + BLOCK_BYTES) : bytes;
      if (ASC_FEATURE_SIMD) {
        let lanesH = f32x4.splat(0);
        let lanesHN = f32x4.splat(0);
        for (; i + 16 <= end; i += 16) {
          const gradient = v128.load(g + i);
          const deviation = f32x4.sub(v128.load(x + i), f32x4.splat(mean));
          const normal = centred ? madd(deviation, f32x4.splat(rstd), f32x4.splat(shift)) : f32x4.mul(deviation, f32x4.splat(rstd));
          const h = f32x4.mul(gradient, v128.load(gamma + i));
          v128.store(partialGamma + i, madd(gradient, normal, v128.load(partialGamma + i)));
          lanesHN = madd(h, normal, lanesHN);
          if (centred) {
            v128.store(partialBeta + i, f32x4.add(gradient, v128.load(partialBeta + i)));
            lanesH = f32x4.add(lanesH, h);
          }
        }
        sumH = sumLanes(lanesH);
        sumHN = sumLanes(lanesHN);
      }
      for (; i < end; i += 4) {
        const gradient = load<f32>(g + i);
        const normal = (load<f32>(x + i) - mean) * rstd + shift;
        const h = gradient * load<f32>(gamma + i);
        store<f32>(partialGamma + i, load<f32>(partialGamma + i) + gradient * normal);
        sumHN += h * normal;
        if (centred) {
          store<f32>(partialBeta + i, load<f32>(partialBeta + i) + gradient);
          sumH += h;
        }
      }
      if (long) {
        if (centred) wideH += <f64>sumH;
        wideHN += <f64>sumHN;
        sumH = 0;
        sumHN = 0;
      }
    } while (i < bytes);
    if (long) {
      sumH = <f32>wideH;
      sumHN = <f32>wideHN;
    }
    // dx = h·rstd + ((x − mean)·factor + term), with h = g·gamma. `factor` and `term` contain the sums and the rounding
    // error of the mean.
    const factor = -rstd * rstd * sumHN / <f32>width;
    const term = -rstd * sumH / <f32>width - rest * factor;
    i = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) {
        const h = f32x4.mul(v128.load(g + i), v128.load(gamma + i));
        const rest = madd(f32x4.sub(v128.load(x + i), f32x4.splat(mean)), f32x4.splat(factor), f32x4.splat(term));
        v128.store(dx + i, madd(h, f32x4.splat(rstd), rest));
      }
    }
    for (; i < bytes; i += 4) {
      const h = load<f32>(g + i) * load<f32>(gamma + i);
      store<f32>(dx + i, h * rstd + ((load<f32>(x + i) - mean) * factor + term));
    }
    x += bytes;
    g += bytes;
    dx += bytes;
  }
}

/**
 * Adds up the row block sums of one parameter, gamma or beta, in `totals` [width], and sets the block sums to zero. A
 * block has `columns` sums, of which `width` sums from `first` on belong to the parameter: gamma begins at 0, beta at
 * `width`. If there are several groups of blocks, the block sums are followed in memory by space for the sums of one
 * group.
 */
export function normTotals(totals: usize, sums: usize, rows: i32, width: i32, columns: i32, first: i32): void {
  const bytes = <usize>width << 2;
  const blockBytes = <usize>columns << 2;
  const blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const grouped = rows > GROUP_ROWS;
  const group = grouped ? sums + <usize>blocks * blockBytes : totals; // a single group needs no sums of its own
  memory.fill(totals, 0, bytes);
  memory.fill(group, 0, bytes);
  for (let block = 0; block < blocks; block++) {
    flush(group, sums + <usize>block * blockBytes + (<usize>first << 2), bytes);
    if (grouped && (block % GROUP_BLOCKS == GROUP_BLOCKS - 1 || block == blocks - 1)) flush(totals, group, bytes);
  }
}

/**
 * Computes the gradient `dx` of `layerNorm`, and the sums for gamma and beta, 2 · width words per row block, which
 * `normTotals` adds.
 */
export function layerNormBackward(
  dx: usize, sums: usize, x: usize, gamma: usize, means: usize, rstds: usize, g: usize, rows: i32, width: i32, part: i32, parts: i32,
): void {
  backwardRows(true, dx, sums, x, gamma, means, rstds, g, rows, width, part, parts);
}

/**
 * Computes the gradient `dx` of `rmsNorm`, and the sums for gamma, width words per row block, which `normTotals` adds.
 */
export function rmsNormBackward(dx: usize, sums: usize, x: usize, gamma: usize, rstds: usize, g: usize, rows: i32, width: i32, part: i32, parts: i32): void {
  backwardRows(false, dx, sums, x, gamma, 0, rstds, g, rows, width, part, parts);
}
