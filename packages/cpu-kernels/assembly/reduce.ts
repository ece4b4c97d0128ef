// Reductions over the middle dimension of a dense [outer, size, inner] tensor. A reduction over any set of dimensions
// is a chain of such reductions.
import { addI, maxF, maxI, maxU, minF, minI, minU, splatBits } from "./vectors";

const enum Fold {
  SumI = 0,
  MaxF = 1,
  MinF = 2,
  MaxI = 3,
  MinI = 4,
  MaxU = 5,
  MinU = 6,
}

// @ts-ignore: decorator
@inline
function combine<T>(fold: i32, x: T, y: T): T {
  if (fold == Fold.SumI) return addI<T>(x, y);
  if (fold == Fold.MaxF) return maxF<T>(x, y);
  if (fold == Fold.MinF) return minF<T>(x, y);
  if (fold == Fold.MaxI) return maxI<T>(x, y);
  if (fold == Fold.MinI) return minI<T>(x, y);
  if (fold == Fold.MaxU) return maxU<T>(x, y);
  return minU<T>(x, y);
}

/**
 * Returns the maximum or minimum of `n` consecutive elements, with instructions that neither propagate NaN nor
 * distinguish zeros. Returns NaN if NaN or the sign of a zero may affect the result; the caller then uses the slow
 * fold, which takes eight instructions instead of three.
 */
// @ts-ignore: decorator
@inline
function fastExtreme(fold: i32, x: usize, n: i32): f32 {
  let a = v128.load(x);
  let b = a;
  let c = a;
  let d = a;
  let odd = i32x4.splat(0);
  for (const blocks = x + ((<usize>(n & ~15)) << 2); x < blocks; x += 64) {
    const e = v128.load(x);
    const f = v128.load(x, 16);
    const g = v128.load(x, 32);
    const h = v128.load(x, 48);
    a = fold == Fold.MaxF ? f32x4.pmax(e, a) : f32x4.pmin(e, a);
    b = fold == Fold.MaxF ? f32x4.pmax(f, b) : f32x4.pmin(f, b);
    c = fold == Fold.MaxF ? f32x4.pmax(g, c) : f32x4.pmin(g, c);
    d = fold == Fold.MaxF ? f32x4.pmax(h, d) : f32x4.pmin(h, d);
    odd = v128.or(odd, v128.or(v128.or(f32x4.ne(e, e), f32x4.ne(f, f)), v128.or(f32x4.ne(g, g), f32x4.ne(h, h))));
  }
  if (v128.any_true(odd)) return f32.NaN;
  a = combine<v128>(fold, combine<v128>(fold, a, b), combine<v128>(fold, c, d));
  let result = combine<f32>(fold, f32x4.extract_lane(a, 0), f32x4.extract_lane(a, 1));
  result = combine<f32>(fold, result, f32x4.extract_lane(a, 2));
  result = combine<f32>(fold, result, f32x4.extract_lane(a, 3));
  return result == 0 ? f32.NaN : result;
}

/** Folds `n` consecutive elements to one number. `empty` is the initial value, and the result if `n` is 0. */
// @ts-ignore: decorator
@inline
function foldRow(fold: i32, empty: f32, x: usize, n: i32): f32 {
  let result = empty;
  const end = x + ((<usize>n) << 2);
  if (ASC_FEATURE_SIMD) {
    if (fold == Fold.MaxF || fold == Fold.MinF) {
      if (n >= 32) {
        const extreme = fastExtreme(fold, x, n);
        if (extreme == extreme) {
          result = combine<f32>(fold, result, extreme);
          x += (<usize>(n & ~15)) << 2;
          n &= 15;
        }
      }
    }
    if (n >= 32) {
      const start = f32x4.splat(empty);
      let a = start;
      let b = start;
      let c = start;
      let d = start;
      for (const blocks = x + ((<usize>(n & ~15)) << 2); x < blocks; x += 64) {
        a = combine<v128>(fold, a, v128.load(x));
        b = combine<v128>(fold, b, v128.load(x, 16));
        c = combine<v128>(fold, c, v128.load(x, 32));
        d = combine<v128>(fold, d, v128.load(x, 48));
      }
      a = combine<v128>(fold, combine<v128>(fold, a, b), combine<v128>(fold, c, d));
      result = combine<f32>(fold, f32x4.extract_lane(a, 0), f32x4.extract_lane(a, 1));
      result = combine<f32>(fold, result, f32x4.extract_lane(a, 2));
      result = combine<f32>(fold, result, f32x4.extract_lane(a, 3));
    }
  }
  for (; x < end; x += 4) result = combine<f32>(fold, result, load<f32>(x));
  return result;
}

/**
 * Computes the maximum of |x| over each row of `size` > 0 elements. Magnitudes are compared as integers, because their
 * bits have the same order, with NaN above infinity.
 */
export function maxMagnitudes(x: usize, output: usize, rows: i32, size: i32): void {
  for (; rows > 0; rows--, output += 4) {
    let result: i32 = 0;
    let left = size;
    if (ASC_FEATURE_SIMD) {
      const mask = i32x4.splat(0x7fffffff);
      let a = i32x4.splat(0);
      let b = a;
      let c = a;
      let d = a;
      for (; left >= 16; left -= 16, x += 64) {
        a = i32x4.max_s(a, v128.and(v128.load(x), mask));
        b = i32x4.max_s(b, v128.and(v128.load(x, 16), mask));
        c = i32x4.max_s(c, v128.and(v128.load(x, 32), mask));
        d = i32x4.max_s(d, v128.and(v128.load(x, 48), mask));
      }
      a = i32x4.max_s(i32x4.max_s(a, b), i32x4.max_s(c, d));
      result = max(
        max(i32x4.extract_lane(a, 0), i32x4.extract_lane(a, 1)),
        max(i32x4.extract_lane(a, 2), i32x4.extract_lane(a, 3)),
      );
    }
    for (; left > 0; left--, x += 4) result = max(result, load<i32>(x) & 0x7fffffff);
    store<i32>(output, result);
  }
}

/** Computes `output[i] = fold(output[i], x[i])`. */
// @ts-ignore: decorator
@inline
function foldInto(fold: i32, x: usize, output: usize, n: i32): void {
  const end = output + ((<usize>n) << 2);
  if (ASC_FEATURE_SIMD) {
    for (const blocks = output + ((<usize>(n & ~3)) << 2); output < blocks; output += 16, x += 16) {
      v128.store(output, combine<v128>(fold, v128.load(output), v128.load(x)));
    }
  }
  for (; output < end; output += 4, x += 4) store<f32>(output, combine<f32>(fold, load<f32>(output), load<f32>(x)));
}

// @ts-ignore: decorator
@inline
function foldMiddle(fold: i32, empty: u32, x: usize, output: usize, outer: i32, size: i32, inner: i32): void {
  const first = reinterpret<f32>(empty);
  const rowBytes = (<usize>inner) << 2;
  for (let o = 0; o < outer; o++) {
    if (inner == 1) {
      store<f32>(output, foldRow(fold, first, x, size));
      x += (<usize>size) << 2;
    } else {
      for (let i: usize = 0; i < rowBytes; i += 4) store<u32>(output + i, empty);
      for (let row = 0; row < size; row++, x += rowBytes) foldInto(fold, x, output, inner);
    }
    output += rowBytes;
  }
}

/** Sums i32 or u32, modulo 2^32. */
export function sumI32(x: usize, output: usize, outer: i32, size: i32, inner: i32): void {
  foldMiddle(Fold.SumI, 0, x, output, outer, size, inner);
}

export function maxF32(x: usize, output: usize, outer: i32, size: i32, inner: i32): void {
  foldMiddle(Fold.MaxF, 0xff800000, x, output, outer, size, inner);
}

export function minF32(x: usize, output: usize, outer: i32, size: i32, inner: i32): void {
  foldMiddle(Fold.MinF, 0x7f800000, x, output, outer, size, inner);
}

export function maxI32(x: usize, output: usize, outer: i32, size: i32, inner: i32): void {
  foldMiddle(Fold.MaxI, 0x80000000, x, output, outer, size, inner);
}

export function minI32(x: usize, output: usize, outer: i32, size: i32, inner: i32): void {
  foldMiddle(Fold.MinI, 0x7fffffff, x, output, outer, size, inner);
}

export function maxU32(x: usize, output: usize, outer: i32, size: i32, inner: i32): void {
  foldMiddle(Fold.MaxU, 0, x, output, outer, size, inner);
}

export function minU32(x: usize, output: usize, outer: i32, size: i32, inner: i32): void {
  foldMiddle(Fold.MinU, 0xffffffff, x, output, outer, size, inner);
}

// @ts-ignore: decorator
@inline
function extremeByte(greatest: i32, a: i32, b: i32): i32 {
  return greatest ? max<i32>(a, b) : min<i32>(a, b);
}

// @ts-ignore: decorator
@inline
function extremeBytes(greatest: i32, a: v128, b: v128): v128 {
  return greatest ? i8x16.max_u(a, b) : i8x16.min_u(a, b);
}

/** Folds `n` consecutive bytes to one byte. `empty` is the initial value, and the result if `n` is 0. */
function foldByteRow(greatest: i32, empty: i32, x: usize, n: i32): i32 {
  let result = empty;
  let i = 0;
  if (ASC_FEATURE_SIMD) {
    if (n >= 32) {
      let a = i8x16.splat(<i8>empty);
      let b = a;
      for (; i + 32 <= n; i += 32) {
        a = extremeBytes(greatest, a, v128.load(x + <usize>i));
        b = extremeBytes(greatest, b, v128.load(x + <usize>i, 16));
      }
      a = extremeBytes(greatest, a, b);
      const low = <u64>i64x2.extract_lane(a, 0);
      const high = <u64>i64x2.extract_lane(a, 1);
      for (let shift: u64 = 0; shift < 64; shift += 8) {
        result = extremeByte(greatest, result, <i32>((low >> shift) & 255));
        result = extremeByte(greatest, result, <i32>((high >> shift) & 255));
      }
    }
  }
  for (; i < n; i++) result = extremeByte(greatest, result, load<u8>(x + <usize>i));
  return result;
}

/** Computes the largest (`greatest` = 1) or smallest (`greatest` = 0) byte, or `empty` if there are no elements. */
export function extremeU8(x: usize, output: usize, outer: i32, size: i32, inner: i32, greatest: i32, empty: i32): void {
  for (let o = 0; o < outer; o++) {
    if (inner == 1) {
      store<u8>(output, foldByteRow(greatest, empty, x, size));
      x += size;
    } else {
      memory.fill(output, <u8>empty, inner);
      for (let row = 0; row < size; row++, x += inner) {
        let i = 0;
        if (ASC_FEATURE_SIMD) {
          for (; i + 16 <= inner; i += 16) {
            const at = output + <usize>i;
            v128.store(at, extremeBytes(greatest, v128.load(at), v128.load(x + <usize>i)));
          }
        }
        for (; i < inner; i++) {
          store<u8>(output + <usize>i, extremeByte(greatest, load<u8>(output + <usize>i), load<u8>(x + <usize>i)));
        }
      }
    }
    output += inner;
  }
}
