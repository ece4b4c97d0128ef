import { chooseWindow } from "./exponent-window";
import { blockCodeBytes, blockSize, exponentOf, lowerHalves, signAndMantissa, upperHalf, upperHalves } from "./halves";
import { listBits, tileSize } from "./outside-list";

export function windowBf16(from: usize, count: usize, counts: usize): u32 {
  return chooseWindow(from, count, false, counts);
}

export function windowF32(from: usize, count: usize, counts: usize): u32 {
  return chooseWindow(from, count, true, counts);
}

/**
 * Writes the uncoded parts (sign and mantissa) of elements i to i + 15, and returns the elements' codes: 1 to 7 for
 * exponents in the window, which begins after exponent `before`; 0 for elements outside the window.
 */
// @ts-ignore: decorator
@inline
function encode16(from: usize, i: usize, wide: bool, before: v128, lower: usize, signs: usize): v128 {
  const a = upperHalves(from, i, wide);
  const b = upperHalves(from, i + 8, wide);
  const byte = i16x8.splat(0xff);
  const low = i8x16.narrow_i16x8_u(v128.and(a, byte), v128.and(b, byte)); // Last exponent bit and mantissa.
  const high = i8x16.narrow_i16x8_u(i16x8.shr_u(a, 8), i16x8.shr_u(b, 8)); // Sign and the upper 7 exponent bits.
  const top = i8x16.splat(-128);
  v128.store(signs + i, v128.bitselect(high, low, top), 0, 1);
  if (wide) {
    v128.store(lower + (i << 1), lowerHalves(from, i), 0, 1);
    v128.store(lower + (i << 1), lowerHalves(from, i + 8), 16, 1);
  }
  // The comparison yields −1 if the last exponent bit is set.
  const exponent = i8x16.sub(i8x16.add(high, high), i8x16.gt_s(i8x16.splat(0), low));
  const code = i8x16.sub(exponent, before);
  return v128.and(code, i8x16.le_u(code, i8x16.splat(7)));
}

// @ts-ignore: decorator
@inline
function outsideBits(code: v128): u64 {
  return <u64>(<u32>i8x16.bitmask(i8x16.eq(code, i8x16.splat(0))));
}

// @ts-ignore: decorator
@inline
function encode(from: usize, count: usize, wide: bool, first: u32, to: usize, maxEscapes: usize, list: usize): i32 {
  const signs = wide ? to + (count << 1) : to;
  const codes = signs + count;
  const escapes = codes + 3 * ((count + 7) >> 3);
  const lastEscape = escapes + maxEscapes;
  const before = i8x16.splat(<i8>(first - 1));
  let escape = escapes;
  let at = codes;
  const whole = count & ~(blockSize - 1);
  for (let tile: usize = 0; tile < whole; tile += tileSize) {
    const tileEnd = min(tile + tileSize, whole);
    let listEnd = list;
    for (let i = tile; i < tileEnd; i += blockSize, at += blockCodeBytes) {
      const c0 = encode16(from, i, wide, before, to, signs);
      const c1 = encode16(from, i + 16, wide, before, to, signs);
      const c2 = encode16(from, i + 32, wide, before, to, signs);
      let x = v128.or(v128.or(c0, i16x8.shl(c1, 3)), i16x8.shl(v128.and(c2, i8x16.splat(3)), 6));
      v128.store(at, x, 0, 1);
      const c3 = encode16(from, i + 48, wide, before, to, signs);
      const outside = outsideBits(c0) | (outsideBits(c1) << 16) | (outsideBits(c2) << 32) | (outsideBits(c3) << 48);
      const c4 = encode16(from, i + 64, wide, before, to, signs);
      const c5 = encode16(from, i + 80, wide, before, to, signs);
      x = v128.or(v128.and(i16x8.shr_u(c2, 2), i8x16.splat(1)), i16x8.shl(c3, 1));
      x = v128.or(v128.or(x, i16x8.shl(c4, 4)), i16x8.shl(v128.and(c5, i8x16.splat(1)), 7));
      v128.store(at, x, 16, 1);
      const c6 = encode16(from, i + 96, wide, before, to, signs);
      const c7 = encode16(from, i + 112, wide, before, to, signs);
      x = v128.or(v128.or(v128.and(i16x8.shr_u(c5, 1), i8x16.splat(3)), i16x8.shl(c6, 2)), i16x8.shl(c7, 5));
      v128.store(at, x, 32, 1);
      const outsideToo = outsideBits(c4) | (outsideBits(c5) << 16) | (outsideBits(c6) << 32) | (outsideBits(c7) << 48);
      listEnd = listBits(outside, i - tile, listEnd);
      listEnd = listBits(outsideToo, i - tile + 64, listEnd);
    }
    if (escape + ((listEnd - list) >> 1) > lastEscape) return -1;
    for (let item = list; item < listEnd; item += 2) store<u8>(escape++, <u8>exponentOf(upperHalf(from, tile + load<u16>(item), wide)));
  }
  const planeBytes = (count - whole + 7) >> 3;
  for (let i = whole; i < count; i += 8, at++) {
    let p0: u32 = 0;
    let p1: u32 = 0;
    let p2: u32 = 0;
    const end = min(i + 8, count);
    for (let j = i; j < end; j++) {
      const half = upperHalf(from, j, wide);
      if (wide) store<u16>(to + (j << 1), load<u16>(from + (j << 2)));
      store<u8>(signs + j, <u8>signAndMantissa(half));
      const exponent = exponentOf(half);
      let code = exponent - first + 1;
      if (code - 1 > 6) {
        if (escape === lastEscape) return -1;
        store<u8>(escape++, <u8>exponent);
        code = 0;
      }
      const bit = <u32>(j - i);
      p0 |= (code & 1) << bit;
      p1 |= ((code >> 1) & 1) << bit;
      p2 |= (code >> 2) << bit;
    }
    store<u8>(at, <u8>p0);
    store<u8>(at + planeBytes, <u8>p1);
    store<u8>(at + 2 * planeBytes, <u8>p2);
  }
  return <i32>(escape - escapes);
}

/**
 * Encodes `count` elements to the memory after a header. `list` is the address of `listBytes` bytes of scratch memory.
 * Returns the number of escapes, or −1 if this number exceeds `maxEscapes`.
 */
export function encodeBf16(from: usize, count: usize, first: u32, to: usize, maxEscapes: usize, list: usize): i32 {
  return encode(from, count, false, first, to, maxEscapes, list);
}

export function encodeF32(from: usize, count: usize, first: u32, to: usize, maxEscapes: usize, list: usize): i32 {
  return encode(from, count, true, first, to, maxEscapes, list);
}
