// Products of a vector and a matrix, used for matrix products with one row or one column.
//
// Each sum adds its terms in the same order as the tiles of `product`, so the results are bitwise identical. First, one
// chain of multiply-adds sums each block of `evenBlock(inner, INNER_BLOCK)` terms. Then the block sums are added in
// sequence.
import { COLUMN_BLOCK, INNER_BLOCK } from "./blocks";
import { madd } from "./lanes";
import { evenBlock } from "./tile";

/** Maximum width of a strip, in units of COLUMN_BLOCK sums. A strip of 4096 sums (16 KiB) fits in L1. */
const STRIP_ROWS: i32 = 8;

/** Computes y[n] += Σ x[k] · b[k][n] over `count` terms, in order. Four rows of `b` at a time are added to `y`. */
function addRows(x: usize, b: usize, stride: usize, y: usize, columns: i32, count: i32): void {
  const bytes = <usize>columns << 2;
  let k = 0;
  if (ASC_FEATURE_SIMD) {
    for (; k + 4 <= count; k += 4) {
      const x0 = v128.load32_splat(x), x1 = v128.load32_splat(x, 4), x2 = v128.load32_splat(x, 8), x3 = v128.load32_splat(x, 12);
      const row1 = b + stride, row2 = row1 + stride, row3 = row2 + stride;
      let j: usize = 0;
      for (; j + 16 <= bytes; j += 16) {
        let sum = madd(x0, v128.load(b + j), v128.load(y + j));
        sum = madd(x1, v128.load(row1 + j), sum);
        sum = madd(x2, v128.load(row2 + j), sum);
        v128.store(y + j, madd(x3, v128.load(row3 + j), sum));
      }
      for (; j < bytes; j += 4) {
        let sum = madd(x0, v128.load32_zero(b + j), v128.load32_zero(y + j));
        sum = madd(x1, v128.load32_zero(row1 + j), sum);
        sum = madd(x2, v128.load32_zero(row2 + j), sum);
        v128.store_lane<f32>(y + j, madd(x3, v128.load32_zero(row3 + j), sum), 0);
      }
      x += 16;
      b = row3 + stride;
    }
  }
  for (; k < count; k++) {
    let j: usize = 0;
    if (ASC_FEATURE_SIMD) {
      const x0 = v128.load32_splat(x);
      for (; j + 16 <= bytes; j += 16) v128.store(y + j, madd(x0, v128.load(b + j), v128.load(y + j)));
      for (; j < bytes; j += 4) v128.store_lane<f32>(y + j, madd(x0, v128.load32_zero(b + j), v128.load32_zero(y + j)), 0);
    } else {
      for (; j < bytes; j += 4) store<f32>(y + j, load<f32>(y + j) + load<f32>(x) * load<f32>(b + j));
    }
    x += 4;
    b += stride;
  }
}

/**
 * Computes y[n] = Σₖ x[k] · b[k][n], or adds the sum to y[n] if `accumulate`. Rows of `b` are `stride` bytes apart and
 * are read once. Scratch: the bytes that `productScratchBytes` returns, except the first `PRODUCT_HEAD_BYTES`.
 */
export function combineRows(x: usize, b: usize, stride: usize, y: usize, columns: i32, inner: i32, accumulate: bool, scratch: usize): void {
  const block = evenBlock(inner, INNER_BLOCK);
  const strip = COLUMN_BLOCK * min(STRIP_ROWS, block);
  for (let j0 = 0; j0 < columns; j0 += strip) {
    const wide = min(strip, columns - j0);
    const bytes = <usize>wide << 2;
    const result = y + (<usize>j0 << 2);
    for (let k0 = 0; k0 < inner; k0 += block) {
      const adding = accumulate || k0 > 0;
      const sums = adding ? scratch : result;
      memory.fill(sums, 0, bytes);
      addRows(x + (<usize>k0 << 2), b + (<usize>j0 << 2) + <usize>k0 * stride, stride, sums, wide, min(block, inner - k0));
      if (!adding) continue;
      let j: usize = 0;
      if (ASC_FEATURE_SIMD) for (; j + 16 <= bytes; j += 16) v128.store(result + j, f32x4.add(v128.load(result + j), v128.load(sums + j)));
      for (; j < bytes; j += 4) store<f32>(result + j, load<f32>(result + j) + load<f32>(sums + j));
    }
  }
}

/** Adds the next four terms of four rows to the four row sums, in order. */
// @ts-ignore: decorator
@inline
function addTerms(sums: v128, row: usize, second: usize, third: usize, fourth: usize, x: usize): v128 {
  const r0 = v128.load(row), r1 = v128.load(row + second), r2 = v128.load(row + third), r3 = v128.load(row + fourth);
  const t0 = v128.shuffle<f32>(r0, r1, 0, 4, 1, 5);
  const t2 = v128.shuffle<f32>(r2, r3, 0, 4, 1, 5);
  sums = madd(v128.load32_splat(x), v128.shuffle<i64>(t0, t2, 0, 2), sums);
  sums = madd(v128.load32_splat(x, 4), v128.shuffle<i64>(t0, t2, 1, 3), sums);
  const t1 = v128.shuffle<f32>(r0, r1, 2, 6, 3, 7);
  const t3 = v128.shuffle<f32>(r2, r3, 2, 6, 3, 7);
  sums = madd(v128.load32_splat(x, 8), v128.shuffle<i64>(t1, t3, 0, 2), sums);
  return madd(v128.load32_splat(x, 12), v128.shuffle<i64>(t1, t3, 1, 3), sums);
}

/** Adds the next term of four rows to the four row sums. */
// @ts-ignore: decorator
@inline
function addTerm(sums: v128, row: usize, second: usize, third: usize, fourth: usize, x: usize): v128 {
  let terms = v128.load32_zero(row);
  terms = v128.load_lane<f32>(row + second, terms, 1);
  terms = v128.load_lane<f32>(row + third, terms, 2);
  terms = v128.load_lane<f32>(row + fourth, terms, 3);
  return madd(v128.load32_splat(x), terms, sums);
}

/** Stores the first `count` of four sums; all four if `count` is larger. Adds the sums to `y` if `adding`. */
// @ts-ignore: decorator
@inline
function putSums(y: usize, sums: v128, count: i32, adding: bool): void {
  if (count >= 4) {
    v128.store(y, adding ? f32x4.add(sums, v128.load(y)) : sums);
    return;
  }
  for (let i = 0; i < count; i++) {
    const sum = f32x4.extract_lane(sums, 0);
    store<f32>(y, adding ? sum + load<f32>(y) : sum);
    sums = v128.shuffle<f32>(sums, sums, 1, 2, 3, 0);
    y += 4;
  }
}

/**
 * Computes y[m] = Σₖ a[m][k] · x[k], or adds the sum to y[m] if `accumulate`. Sixteen rows at a time are summed in four
 * independent vectors. Blocks of four rows and four terms are transposed in registers.
 */
export function dotRows(a: usize, x: usize, y: usize, rows: i32, inner: i32, accumulate: bool): void {
  const row = <usize>inner << 2;
  const block = evenBlock(inner, INNER_BLOCK);
  let m = 0;
  if (ASC_FEATURE_SIMD) {
    const second: usize = row, third: usize = 2 * row, fourth: usize = 3 * row;
    for (; m + 16 <= rows; m += 16) {
      for (let k0 = 0; k0 < inner; k0 += block) {
        const count = min(block, inner - k0);
        let at0 = a + (<usize>k0 << 2), at1 = at0 + 4 * row, at2 = at1 + 4 * row, at3 = at2 + 4 * row;
        let v = x + (<usize>k0 << 2);
        let s0 = f32x4.splat(0), s1 = f32x4.splat(0), s2 = f32x4.splat(0), s3 = f32x4.splat(0);
        let k = 0;
        for (; k + 4 <= count; k += 4) {
          s0 = addTerms(s0, at0, second, third, fourth, v);
          s1 = addTerms(s1, at1, second, third, fourth, v);
          s2 = addTerms(s2, at2, second, third, fourth, v);
          s3 = addTerms(s3, at3, second, third, fourth, v);
          at0 += 16;
          at1 += 16;
          at2 += 16;
          at3 += 16;
          v += 16;
        }
        for (; k < count; k++) {
          s0 = addTerm(s0, at0, second, third, fourth, v);
          s1 = addTerm(s1, at1, second, third, fourth, v);
          s2 = addTerm(s2, at2, second, third, fourth, v);
          s3 = addTerm(s3, at3, second, third, fourth, v);
          at0 += 4;
          at1 += 4;
          at2 += 4;
          at3 += 4;
          v += 4;
        }
        const adding = accumulate || k0 > 0;
        putSums(y, s0, 4, adding);
        putSums(y + 16, s1, 4, adding);
        putSums(y + 32, s2, 4, adding);
        putSums(y + 48, s3, 4, adding);
      }
      a += 16 * row;
      y += 64;
    }
    for (; m < rows; m += 4) {
      // Rows after the last repeat the last row; their sums are not stored.
      const there = min(4, rows - m);
      const second: usize = there > 1 ? row : 0, third: usize = there > 2 ? 2 * row : second, fourth: usize = there > 3 ? 3 * row : third;
      for (let k0 = 0; k0 < inner; k0 += block) {
        const count = min(block, inner - k0);
        let at = a + (<usize>k0 << 2);
        let v = x + (<usize>k0 << 2);
        let sums = f32x4.splat(0);
        let k = 0;
        for (; k + 4 <= count; k += 4) {
          sums = addTerms(sums, at, second, third, fourth, v);
          at += 16;
          v += 16;
        }
        for (; k < count; k++) {
          sums = addTerm(sums, at, second, third, fourth, v);
          at += 4;
          v += 4;
        }
        putSums(y, sums, there, accumulate || k0 > 0);
      }
      a += 4 * row;
      y += 16;
    }
    return;
  }
  for (; m < rows; m++) {
    for (let k0 = 0; k0 < inner; k0 += block) {
      const end = min(k0 + block, inner);
      let sum: f32 = 0;
      for (let k = k0; k < end; k++) sum += load<f32>(a + (<usize>k << 2)) * load<f32>(x + (<usize>k << 2));
      store<f32>(y, accumulate || k0 > 0 ? sum + load<f32>(y) : sum);
    }
    a += row;
    y += 4;
  }
}
