// Batch normalization over the columns (channels) of a matrix of f32.
//
// Statistics are computed in blocks of 64 rows. Two passes over a block, which stays in the L1 cache, compute its mean
// and its squared deviations. The results are then combined with the statistics of the previous rows (Chan, Golub and
// LeVeque 1979). Therefore the matrix is read from memory once, and no cancellation occurs.
import { madd } from "./lanes";

const BLOCK_ROWS: i32 = 64;
/**
 * Number of rows per partial sum of the gamma and beta gradients. With partial sums, the rounding error over n rows
 * grows like 128 + n/4096 instead of n.
 */
const GROUP_ROWS: i32 = 64 * BLOCK_ROWS;

/** Returns the sum of (x − centre)^power over `rows` rows of four columns. The power is 2 if `squared`, otherwise 1. */
// @ts-ignore: decorator
@inline
function sumOfLanes(x: usize, step: usize, rows: i32, centre: v128, squared: bool): v128 {
  let even = f32x4.splat(0);
  let odd = f32x4.splat(0);
  let row = 0;
  for (; row + 2 <= rows; row += 2) {
    const a = f32x4.sub(v128.load(x), centre);
    const b = f32x4.sub(v128.load(x + step), centre);
    even = squared ? madd(a, a, even) : f32x4.add(even, a);
    odd = squared ? madd(b, b, odd) : f32x4.add(odd, b);
    x += 2 * step;
  }
  if (row < rows) {
    const a = f32x4.sub(v128.load(x), centre);
    even = squared ? madd(a, a, even) : f32x4.add(even, a);
  }
  return f32x4.add(even, odd);
}

/** Variant of `sumOfLanes` for one column. */
// @ts-ignore: decorator
@inline
function sumOfColumn(x: usize, step: usize, rows: i32, centre: f32, squared: bool): f32 {
  let total: f32 = 0;
  for (let row = 0; row < rows; row++) {
    const a = load<f32>(x) - centre;
    total += squared ? a * a : a;
    x += step;
  }
  return total;
}

/**
 * Computes the mean of each column, and the mean squared deviation from the mean. The rounding error of each block is
 * stored in `rests` (2 · width words) and added to the next block. Without this compensation, the error of the mean of
 * n rows grows like √(n/64).
 */
function statistics(means: usize, variances: usize, x: usize, rows: i32, width: i32, rests: usize, first: i32, last: i32): void {
  const bytes = <usize>width << 2;
  const restsOfSquares = rests + bytes;
  const begin = <usize>first << 2;
  const end = <usize>last << 2;
  memory.fill(means + begin, 0, end - begin);
  memory.fill(variances + begin, 0, end - begin);
  memory.fill(rests + begin, 0, end - begin);
  memory.fill(restsOfSquares + begin, 0, end - begin);
  for (let done = 0; done < rows; done += BLOCK_ROWS) {
    const count = min(BLOCK_ROWS, rows - done);
    const weight = <f32>count / <f32>(done + count);
    // Add the block's squared deviations, plus a term for the distance between the block mean and the mean of the
    // previous rows. Before the first block, this term must be 0 even if the distance is infinite.
    const spread = <f32>done * weight;
    const share = <f32>1 / <f32>count;
    let i: usize = begin;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= end; i += 16) {
        const before = v128.load(means + i);
        const rest = v128.load(rests + i);
        // Sum the deviations from the current mean, because a plain sum loses precision if all values are far from
        // zero.
        const distance = f32x4.mul(sumOfLanes(x + i, bytes, count, before, false), f32x4.splat(share));
        const squares = sumOfLanes(x + i, bytes, count, f32x4.add(before, distance), true);
        const ahead = f32x4.sub(distance, rest);
        const step = madd(ahead, f32x4.splat(weight), rest);
        const mean = f32x4.add(before, step);
        v128.store(means + i, mean);
        v128.store(rests + i, f32x4.sub(step, f32x4.sub(mean, before)));
        const variance = v128.load(variances + i);
        const more = f32x4.add(madd(ahead, f32x4.mul(ahead, f32x4.splat(spread)), squares), v128.load(restsOfSquares + i));
        const sum = f32x4.add(variance, more);
        v128.store(variances + i, sum);
        v128.store(restsOfSquares + i, f32x4.sub(more, f32x4.sub(sum, variance)));
      }
    }
    for (; i < end; i += 4) {
      const before = load<f32>(means + i);
      const rest = load<f32>(rests + i);
      const distance = sumOfColumn(x + i, bytes, count, before, false) * share;
      const squares = sumOfColumn(x + i, bytes, count, before + distance, true);
      const ahead = distance - rest;
      const step = rest + ahead * weight;
      const mean = before + step;
      store<f32>(means + i, mean);
      store<f32>(rests + i, step - (mean - before));
      const variance = load<f32>(variances + i);
      const more = squares + ahead * (ahead * spread) + load<f32>(restsOfSquares + i);
      const sum = variance + more;
      store<f32>(variances + i, sum);
      store<f32>(restsOfSquares + i, more - (sum - variance));
    }
    x += <usize>count * bytes;
  }
  for (let i: usize = begin; i < end; i += 4) store<f32>(variances + i, load<f32>(variances + i) / <f32>rows);
}

/**
 * Computes the mean and variance of columns `first` … `last` − 1, and writes the factors of `normalizeColumns`, gamma /
 * √(variance + ε), to `scales`. Scratch: 2 · width words.
 */
export function columnStatistics(
  means: usize, variances: usize, scales: usize, x: usize, gamma: usize, rows: i32, width: i32, epsilon: f32, scratch: usize, first: i32, last: i32,
): void {
  statistics(means, variances, x, rows, width, scratch, first, last);
  for (let i = <usize>first << 2; i < <usize>last << 2; i += 4) store<f32>(scales + i, load<f32>(gamma + i) / sqrt<f32>(load<f32>(variances + i) + epsilon));
}

/** Computes `(x − mean) · scale + beta` per column. */
export function normalizeColumns(y: usize, x: usize, means: usize, scales: usize, beta: usize, rows: i32, width: i32): void {
  const bytes = <usize>width << 2;
  for (let row = 0; row < rows; row++) {
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) {
        v128.store(y + i, madd(f32x4.sub(v128.load(x + i), v128.load(means + i)), v128.load(scales + i), v128.load(beta + i)));
      }
    }
    for (; i < bytes; i += 4) store<f32>(y + i, (load<f32>(x + i) - load<f32>(means + i)) * load<f32>(scales + i) + load<f32>(beta + i));
    x += bytes;
    y += bytes;
  }
}

/** Adds Σ g to `dBeta` and Σ g·(x − mean) to `dGamma`, over a block of rows. */
// @ts-ignore: decorator
@inline
function addBlock(dGamma: usize, dBeta: usize, x: usize, means: usize, g: usize, rows: i32, bytes: usize, begin: usize, end: usize): void {
  let i = begin;
  if (ASC_FEATURE_SIMD) {
    for (; i + 16 <= end; i += 16) {
      const mean = v128.load(means + i);
      let sumG = f32x4.splat(0);
      let sumGX = f32x4.splat(0);
      let at = i;
      for (let row = 0; row < rows; row++) {
        const gradient = v128.load(g + at);
        sumG = f32x4.add(sumG, gradient);
        sumGX = madd(gradient, f32x4.sub(v128.load(x + at), mean), sumGX);
        at += bytes;
      }
      v128.store(dBeta + i, f32x4.add(v128.load(dBeta + i), sumG));
      v128.store(dGamma + i, f32x4.add(v128.load(dGamma + i), sumGX));
    }
  }
  for (; i < end; i += 4) {
    const mean = load<f32>(means + i);
    let sumG: f32 = 0;
    let sumGX: f32 = 0;
    let at = i;
    for (let row = 0; row < rows; row++) {
      const gradient = load<f32>(g + at);
      sumG += gradient;
      sumGX += gradient * (load<f32>(x + at) - mean);
      at += bytes;
    }
    store<f32>(dBeta + i, load<f32>(dBeta + i) + sumG);
    store<f32>(dGamma + i, load<f32>(dGamma + i) + sumGX);
  }
}

/**
 * Computes the gamma and beta gradients of columns `first` … `last` − 1, and the three factors of `columnGradients`: a
 * = γ·rstd, b = −γ·rstd²·dγ/N and c = −γ·rstd·dβ/N. Writes these factors to `factors` (3 · width words).
 */
export function columnFactors(
  dGamma: usize, dBeta: usize, factors: usize, x: usize, gamma: usize, means: usize, variances: usize, g: usize, rows: i32, width: i32, epsilon: f32, first: i32, last: i32,
): void {
  const bytes = <usize>width << 2;
  const second = factors + bytes;
  const third = second + bytes;
  const begin = <usize>first << 2;
  const end = <usize>last << 2;
  memory.fill(dGamma + begin, 0, end - begin);
  memory.fill(dBeta + begin, 0, end - begin);
  memory.fill(second + begin, 0, end - begin);
  memory.fill(third + begin, 0, end - begin);
  const grouped = rows > GROUP_ROWS;
  const groupGamma = grouped ? second : dGamma;
  const groupBeta = grouped ? third : dBeta;
  for (let done = 0; done < rows; done += BLOCK_ROWS) {
    const offset = <usize>done * bytes;
    addBlock(groupGamma, groupBeta, x + offset, means, g + offset, min(BLOCK_ROWS, rows - done), bytes, begin, end);
    if (grouped && (done % GROUP_ROWS == GROUP_ROWS - BLOCK_ROWS || rows - done <= BLOCK_ROWS)) {
      for (let i = begin; i < end; i += 4) {
        store<f32>(dGamma + i, load<f32>(dGamma + i) + load<f32>(groupGamma + i));
        store<f32>(dBeta + i, load<f32>(dBeta + i) + load<f32>(groupBeta + i));
      }
      memory.fill(second + begin, 0, end - begin);
      memory.fill(third + begin, 0, end - begin);
    }
  }
  for (let i = begin; i < end; i += 4) {
    const rstd = <f32>1 / sqrt<f32>(load<f32>(variances + i) + epsilon);
    const gradient = load<f32>(dGamma + i) * rstd;
    const scale = load<f32>(gamma + i) * rstd;
    store<f32>(dGamma + i, gradient);
    store<f32>(factors + i, scale);
    store<f32>(second + i, -scale * rstd * gradient / <f32>rows);
    store<f32>(third + i, -scale * load<f32>(dBeta + i) / <f32>rows);
  }
}

/** Computes `dx = g·a + (x − mean)·b + c` per column. */
export function columnGradients(dx: usize, x: usize, g: usize, means: usize, factors: usize, rows: i32, width: i32): void {
  const bytes = <usize>width << 2;
  const second = factors + bytes;
  const third = second + bytes;
  for (let row = 0; row < rows; row++) {
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) {
        const rest = madd(f32x4.sub(v128.load(x + i), v128.load(means + i)), v128.load(second + i), v128.load(third + i));
        v128.store(dx + i, madd(v128.load(g + i), v128.load(factors + i), rest));
      }
    }
    for (; i < bytes; i += 4) {
      const rest = (load<f32>(x + i) - load<f32>(means + i)) * load<f32>(second + i) + load<f32>(third + i);
      store<f32>(dx + i, load<f32>(g + i) * load<f32>(factors + i) + rest);
    }
    x += bytes;
    g += bytes;
    dx += bytes;
  }
}
