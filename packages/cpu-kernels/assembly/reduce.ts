// Reductions over the middle dimension of [outer, size, inner], dense. Any set of dimensions is a chain of these.
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

/** Fold `n` neighbours into one lane, starting from `empty`. */
// @ts-ignore: decorator
@inline
function foldRow(fold: i32, empty: f32, x: usize, n: i32): f32 {
  let result = empty;
  const end = x + ((<usize>n) << 2);
  if (ASC_FEATURE_SIMD) {
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

/** `output[i] = fold(output[i], x[i])` */
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

/** Wrapping sum of i32 or u32. */
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

/** Greatest (`greatest` = 1) or least byte; `empty` where there is none. */
export function extremeU8(x: usize, output: usize, outer: i32, size: i32, inner: i32, greatest: i32, empty: i32): void {
  for (let o = 0; o < outer; o++) {
    memory.fill(output, <u8>empty, inner);
    for (let row = 0; row < size; row++) {
      for (let i = 0; i < inner; i++, x++) {
        const value = load<u8>(x);
        const held = load<u8>(output + i);
        if (greatest ? value > held : value < held) store<u8>(output + i, value);
      }
    }
    output += inner;
  }
}
