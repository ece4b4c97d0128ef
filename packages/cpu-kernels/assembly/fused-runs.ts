// Conversions between memory and lanes: every dtype is converted to a 32-bit lane (f16 and bf16 to f32, u8 to u32, bool
// to a mask) and back.
import { decodeF16, encodeF16 } from "./half";
import { pmaxF, pminF, splat, truncSmall } from "./vectors";

export const enum Kind {
  Word = 0,
  Byte = 1,
  Bool = 2,
  F16 = 3,
  Bf16 = 4,
  /** Format for stores only: lanes hold floats, and each float is stored as a byte. */
  FloatByte = 5,
}

/**
 * Clamps floats to the range from 0 to 255 and truncates them to integers. NaN becomes 0, because each bound is the
 * first operand of `pmax` or `pmin`, which return their first operand if the second is NaN.
 */
// @ts-ignore: decorator
@inline
export function byteOf<T>(x: T): T {
  return truncSmall<T>(pminF<T>(splat<T>(255.0), pmaxF<T>(splat<T>(0.0), x)));
}

/** Returns the size of one element in bytes. */
// @ts-ignore: decorator
@inline
export function widthOf(kind: i32): usize {
  return kind == Kind.Word ? 4 : kind == Kind.F16 || kind == Kind.Bf16 ? 2 : 1;
}

function loadLane(kind: i32, source: usize): u32 {
  if (kind == Kind.Word) return load<u32>(source);
  if (kind == Kind.Byte) return load<u8>(source);
  if (kind == Kind.Bool) return 0 - <u32>load<u8>(source);
  if (kind == Kind.Bf16) return (<u32>load<u16>(source)) << 16;
  return reinterpret<u32>(decodeF16<f32>(reinterpret<f32>(<u32>load<u16>(source))));
}

/** Loads four consecutive bytes, each with value 0 … 255. */
// @ts-ignore: decorator
@inline
function loadBytes(source: usize): v128 {
  return v128.extend_low<u16>(v128.extend_low<u8>(v128.load32_zero(source)));
}

/** Widens sixteen bytes to sixteen lanes: numbers 0 … 255, or masks for bools. */
// @ts-ignore: decorator
@inline
function widenSixteen(kind: i32, source: usize, target: usize): void {
  const bytes = v128.load(source);
  const all = kind == Kind.Bool ? i8x16.neg(bytes) : bytes;
  const low = kind == Kind.Bool ? i16x8.extend_low_i8x16_s(all) : i16x8.extend_low_i8x16_u(all);
  const high = kind == Kind.Bool ? i16x8.extend_high_i8x16_s(all) : i16x8.extend_high_i8x16_u(all);
  v128.store(target, kind == Kind.Bool ? i32x4.extend_low_i16x8_s(low) : i32x4.extend_low_i16x8_u(low));
  v128.store(target, kind == Kind.Bool ? i32x4.extend_high_i16x8_s(low) : i32x4.extend_high_i16x8_u(low), 16);
  v128.store(target, kind == Kind.Bool ? i32x4.extend_low_i16x8_s(high) : i32x4.extend_low_i16x8_u(high), 32);
  v128.store(target, kind == Kind.Bool ? i32x4.extend_high_i16x8_s(high) : i32x4.extend_high_i16x8_u(high), 48);
}

/** Converts `n` elements in memory, `stride` elements apart, to adjacent 32-bit lanes. */
export function loadRun<T>(kind: i32, source: usize, stride: i32, target: usize, n: i32): void {
  if (isVector<T>()) {
    const blocks = target + ((<usize>(n & ~3)) << 2);
    if (stride == 1) {
      const start = target;
      if (kind == Kind.Word) {
        for (; target < blocks; target += 16, source += 16) v128.store(target, v128.load(source));
      } else if (kind == Kind.Byte) {
        for (; target + 48 < blocks; target += 64, source += 16) widenSixteen(Kind.Byte, source, target);
        for (; target < blocks; target += 16, source += 4) v128.store(target, loadBytes(source));
      } else if (kind == Kind.Bool) {
        for (; target + 48 < blocks; target += 64, source += 16) widenSixteen(Kind.Bool, source, target);
        for (; target < blocks; target += 16, source += 4) v128.store(target, i32x4.neg(loadBytes(source)));
      } else if (kind == Kind.Bf16) {
        for (; target < blocks; target += 16, source += 8) v128.store(target, i32x4.shl(v128.load16x4_u(source), 16));
      } else {
        for (; target < blocks; target += 16, source += 8) v128.store(target, decodeF16<v128>(v128.load16x4_u(source)));
      }
      n -= <i32>((target - start) >> 2);
    } else if (stride == 0 && n >= 4) {
      const value = i32x4.splat(loadLane(kind, source));
      for (; target < blocks; target += 16) v128.store(target, value);
      n &= 3;
    }
  }
  const step = <usize>stride * widthOf(kind);
  if (kind == Kind.Word) {
    for (let i = 0; i < n; i++, source += step, target += 4) store<u32>(target, load<u32>(source));
  } else {
    for (let i = 0; i < n; i++, source += step, target += 4) store<u32>(target, loadLane(kind, source));
  }
}

function storeLane(kind: i32, lane: u32, target: usize): void {
  if (kind == Kind.FloatByte) store<u8>(target, <u8>reinterpret<u32>(byteOf<f32>(reinterpret<f32>(lane))));
  else if (kind == Kind.Word) store<u32>(target, lane);
  else if (kind == Kind.Byte) store<u8>(target, <u8>lane);
  else if (kind == Kind.Bool) store<u8>(target, <u8>(lane & 1));
  else if (kind == Kind.Bf16) store<u16>(target, <u16>(lane >> 16));
  else store<u16>(target, <u16>reinterpret<u32>(encodeF16<f32>(reinterpret<f32>(lane))));
}

/** Converts sixteen floats to sixteen bytes. */
// @ts-ignore: decorator
@inline
function castSixteen(source: usize): v128 {
  const a = i16x8.narrow_i32x4_s(byteOf<v128>(v128.load(source)), byteOf<v128>(v128.load(source, 16)));
  const b = i16x8.narrow_i32x4_s(byteOf<v128>(v128.load(source, 32)), byteOf<v128>(v128.load(source, 48)));
  return i8x16.narrow_i16x8_u(a, b);
}

/** Narrows sixteen lanes to sixteen bytes: numbers from 0 to 255, or masks for bools. */
// @ts-ignore: decorator
@inline
function narrowSixteen(kind: i32, source: usize): v128 {
  const a = i16x8.narrow_i32x4_s(v128.load(source), v128.load(source, 16));
  const b = i16x8.narrow_i32x4_s(v128.load(source, 32), v128.load(source, 48));
  return kind == Kind.Byte ? i8x16.narrow_i16x8_u(a, b) : i8x16.narrow_i16x8_s(a, b);
}

/** Narrows four lanes to four bytes. */
// @ts-ignore: decorator
@inline
function narrowToBytes(lanes: v128): u32 {
  const shorts = v128.narrow<i32>(lanes, lanes);
  return i32x4.extract_lane(i8x16.narrow_i16x8_u(shorts, shorts), 0);
}

/**
 * Writes `n` dense lanes as elements of their dtype. The lanes hold values that the dtype represents exactly, so no
 * value is rounded here.
 */
export function storeRun<T>(kind: i32, source: usize, target: usize, n: i32): void {
  if (isVector<T>()) {
    const blocks = source + ((<usize>(n & ~3)) << 2);
    n &= 3;
    if (kind == Kind.Word) {
      for (; source < blocks; target += 16, source += 16) v128.store(target, v128.load(source));
    } else if (kind == Kind.FloatByte) {
      for (; source + 48 < blocks; target += 16, source += 64) v128.store(target, castSixteen(source));
      for (; source < blocks; target += 4, source += 16) store<u32>(target, narrowToBytes(byteOf<v128>(v128.load(source))));
    } else if (kind == Kind.Byte) {
      for (; source + 48 < blocks; target += 16, source += 64) v128.store(target, narrowSixteen(Kind.Byte, source));
      for (; source < blocks; target += 4, source += 16) store<u32>(target, narrowToBytes(v128.load(source)));
    } else if (kind == Kind.Bool) {
      for (; source + 48 < blocks; target += 16, source += 64) v128.store(target, v128.and(narrowSixteen(Kind.Bool, source), i8x16.splat(1)));
      for (; source < blocks; target += 4, source += 16) store<u32>(target, narrowToBytes(v128.and(v128.load(source), i32x4.splat(1))));
    } else if (kind == Kind.Bf16) {
      for (; source < blocks; target += 8, source += 16) {
        const bits = i32x4.shr_u(v128.load(source), 16);
        store<u64>(target, i64x2.extract_lane(i16x8.narrow_i32x4_u(bits, bits), 0));
      }
    } else {
      for (; source < blocks; target += 8, source += 16) {
        const bits = encodeF16<v128>(v128.load(source));
        store<u64>(target, i64x2.extract_lane(i16x8.narrow_i32x4_u(bits, bits), 0));
      }
    }
  }
  const width = widthOf(kind);
  for (let i = 0; i < n; i++, source += 4, target += width) storeLane(kind, load<u32>(source), target);
}
