// Sums of f32 in two levels, so that the error stays near one rounding for any number of terms: short blocks are summed
// in f32, and the sums of blocks are added in f64. The order of additions depends only on the shape.
import { sumLanes } from "./lanes";

/** Number of terms per block. Each lane of a block sum adds 16 terms in sequence. */
const BLOCK: i32 = 512;
/** Minimum number of terms for a sum in SIMD vectors. Shorter sums use `sumFew`. */
const FEW: i32 = 32;
/** Number of rows per block of column sums. */
const ROWS: i32 = 128;
/** Number of columns that are summed together. Their f32 and f64 totals take 12 KiB of scratch memory. */
const COLUMNS: i32 = 1024;

/** Loads four consecutive terms of a sum, or their magnitudes if `magnitudes`. */
// @ts-ignore: decorator
@inline
function terms(magnitudes: bool, at: usize): v128 {
  return magnitudes ? f32x4.abs(v128.load(at)) : v128.load(at);
}

// @ts-ignore: decorator
@inline
function term(magnitudes: bool, at: usize): f32 {
  return magnitudes ? abs<f32>(load<f32>(at)) : load<f32>(at);
}

function sumBlock(x: usize, n: i32): f32 {
  return sumTerms(false, x, n);
}

function sumMagnitudesBlock(x: usize, n: i32): f32 {
  return sumTerms(true, x, n);
}

/** Returns the sum of `n` < FEW consecutive elements. */
// @ts-ignore: decorator
@inline
function sumFew(magnitudes: bool, x: usize, n: i32): f32 {
  const end = x + ((<usize>n) << 2);
  let a = f32x4.splat(0);
  for (; x + 16 <= end; x += 16) a = f32x4.add(a, terms(magnitudes, x));
  let total = sumLanes(a);
  for (; x < end; x += 4) total += term(magnitudes, x);
  return total;
}

/** Returns the sum of at most BLOCK consecutive elements. */
// @ts-ignore: decorator
@inline
function sumTerms(magnitudes: bool, x: usize, n: i32): f32 {
  const end = x + ((<usize>n) << 2);
  let total: f32 = 0;
  if (ASC_FEATURE_SIMD) {
    if (n < FEW) {
      total = sumFew(magnitudes, x, n);
    } else {
      const zero = f32x4.splat(0);
      let a = zero,
        b = zero,
        c = zero,
        d = zero,
        e = zero,
        f = zero,
        g = zero,
        h = zero;
      for (const blocks = x + ((<usize>(n & ~31)) << 2); x < blocks; x += 128) {
        a = f32x4.add(a, terms(magnitudes, x));
        b = f32x4.add(b, terms(magnitudes, x + 16));
        c = f32x4.add(c, terms(magnitudes, x + 32));
        d = f32x4.add(d, terms(magnitudes, x + 48));
        e = f32x4.add(e, terms(magnitudes, x + 64));
        f = f32x4.add(f, terms(magnitudes, x + 80));
        g = f32x4.add(g, terms(magnitudes, x + 96));
        h = f32x4.add(h, terms(magnitudes, x + 112));
      }
      for (; x + 16 <= end; x += 16) a = f32x4.add(a, terms(magnitudes, x));
      total = sumLanes(f32x4.add(f32x4.add(f32x4.add(a, b), f32x4.add(c, d)), f32x4.add(f32x4.add(e, f), f32x4.add(g, h))));
      for (; x < end; x += 4) total += term(magnitudes, x);
    }
  } else {
    let a: f32 = 0,
      b: f32 = 0,
      c: f32 = 0,
      d: f32 = 0;
    for (const blocks = x + ((<usize>(n & ~3)) << 2); x < blocks; x += 16) {
      a += term(magnitudes, x);
      b += term(magnitudes, x + 4);
      c += term(magnitudes, x + 8);
      d += term(magnitudes, x + 12);
    }
    for (; x < end; x += 4) total += term(magnitudes, x);
    total += a + b + (c + d);
  }
  return total;
}

/** Returns the sum of `n` consecutive elements, added block by block. */
export function sumBlocks(x: usize, n: i32): f64 {
  let total: f64 = 0;
  for (; n > 0; n -= BLOCK, x += BLOCK * 4) total += <f64>sumBlock(x, min<i32>(n, BLOCK));
  return total;
}

export function sumMagnitudesBlocks(x: usize, n: i32): f64 {
  let total: f64 = 0;
  for (; n > 0; n -= BLOCK, x += BLOCK * 4) total += <f64>sumMagnitudesBlock(x, min<i32>(n, BLOCK));
  return total;
}

/**
 * Returns the sum of `n` consecutive elements. A narrow row is summed inline, because a call would take as long as the
 * sum.
 */
// @ts-ignore: decorator
@inline
export function sumRow(x: usize, n: i32): f32 {
  if (ASC_FEATURE_SIMD) {
    if (n < FEW) return sumFew(false, x, n);
  }
  return n <= BLOCK ? sumBlock(x, n) : <f32>sumBlocks(x, n);
}

/** Computes the sum of |x| over each row of `size` elements, added in the same order as in `sumF32`. */
export function sumMagnitudes(x: usize, output: usize, rows: i32, size: i32): void {
  for (; rows > 0; rows--, x += (<usize>size) << 2, output += 4) {
    store<f32>(output, size <= BLOCK ? sumMagnitudesBlock(x, size) : <f32>sumMagnitudesBlocks(x, size));
  }
}

/**
 * Computes `total[i] = Σ x[row][i]` over `rows` ≤ ROWS rows that are `stride` bytes apart. Adds four rows at a time, so
 * that totals are accessed a quarter as often.
 */
function sumRowsBlock(x: usize, total: usize, rows: i32, columns: i32, stride: usize): void {
  memory.fill(total, 0, (<usize>columns) << 2);
  const bytes = (<usize>columns) << 2;
  for (; rows >= 4; rows -= 4, x += 4 * stride) {
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (const blocks = bytes & ~15; i < blocks; i += 16) {
        const at = x + i;
        const front = f32x4.add(v128.load(at), v128.load(at + stride));
        const back = f32x4.add(v128.load(at + 2 * stride), v128.load(at + 3 * stride));
        v128.store(total + i, f32x4.add(v128.load(total + i), f32x4.add(front, back)));
      }
    }
    for (; i < bytes; i += 4) {
      const at = x + i;
      const four = load<f32>(at) + load<f32>(at + stride) + (load<f32>(at + 2 * stride) + load<f32>(at + 3 * stride));
      store<f32>(total + i, load<f32>(total + i) + four);
    }
  }
  for (; rows > 0; rows--, x += stride) {
    for (let i: usize = 0; i < bytes; i += 4) store<f32>(total + i, load<f32>(total + i) + load<f32>(x + i));
  }
}

/** Sums over the middle dimension of [outer, size, inner]. `scratch` holds 12 KiB. */
export function sumF32(x: usize, output: usize, outer: i32, size: i32, inner: i32, scratch: usize): void {
  if (inner == 1) {
    for (let o = 0; o < outer; o++, x += (<usize>size) << 2, output += 4) store<f32>(output, sumRow(x, size));
    return;
  }
  const stride = (<usize>inner) << 2;
  for (let o = 0; o < outer; o++, x += <usize>size * stride, output += stride) sumColumns(x, output, size, inner, 0, inner, scratch);
}

/** Sums columns `begin` … `end` − 1 of [size, inner]. `scratch` holds 12 KiB. */
export function sumColumns(x: usize, output: usize, size: i32, inner: i32, begin: i32, end: i32, scratch: usize): void {
  const stride = (<usize>inner) << 2;
  const wide = scratch + COLUMNS * 4;
  for (let first = begin; first < end; first += COLUMNS) {
    const columns = min<i32>(COLUMNS, end - first);
    const from = x + ((<usize>first) << 2);
    const to = output + ((<usize>first) << 2);
    if (size <= ROWS) {
      sumRowsBlock(from, to, size, columns, stride);
      continue;
    }
    memory.fill(wide, 0, (<usize>columns) << 3);
    for (let row = 0; row < size; row += ROWS) {
      sumRowsBlock(from + <usize>row * stride, scratch, min<i32>(ROWS, size - row), columns, stride);
      for (let i = 0; i < columns; i++) {
        const total = wide + ((<usize>i) << 3);
        store<f64>(total, load<f64>(total) + <f64>load<f32>(scratch + ((<usize>i) << 2)));
      }
    }
    for (let i = 0; i < columns; i++) store<f32>(to + ((<usize>i) << 2), <f32>load<f64>(wide + ((<usize>i) << 3)));
  }
}
