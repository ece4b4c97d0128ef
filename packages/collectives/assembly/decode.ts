import { blockCodeBytes, blockSize, joinHalf, setUpperHalf } from "./halves";
import { listBits, tileSize } from "./outside-list";

/**
 * Decodes elements i to i + 15 from their codes. Elements outside the window get the placeholder exponent `before`.
 * Returns a bit mask of the elements outside the window.
 */
// @ts-ignore: decorator
@inline
function decode16(code: v128, i: usize, wide: bool, before: v128, lower: usize, signs: usize, to: usize): u64 {
  const exponent = i8x16.add(code, before);
  const signMantissa = v128.load(signs + i, 0, 1);
  const top = i8x16.splat(-128);
  const high = v128.bitselect(signMantissa, i16x8.shr_u(exponent, 1), top);
  const low = v128.bitselect(i16x8.shl(exponent, 7), signMantissa, top);
  const a = v128.shuffle<u8>(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const b = v128.shuffle<u8>(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  if (wide) {
    const c = v128.load(lower + (i << 1), 0, 1);
    const d = v128.load(lower + (i << 1), 16, 1);
    const target = to + (i << 2);
    v128.store(target, v128.shuffle<u16>(c, a, 0, 8, 1, 9, 2, 10, 3, 11), 0, 1);
    v128.store(target, v128.shuffle<u16>(c, a, 4, 12, 5, 13, 6, 14, 7, 15), 16, 1);
    v128.store(target, v128.shuffle<u16>(d, b, 0, 8, 1, 9, 2, 10, 3, 11), 32, 1);
    v128.store(target, v128.shuffle<u16>(d, b, 4, 12, 5, 13, 6, 14, 7, 15), 48, 1);
  } else {
    const target = to + (i << 1);
    v128.store(target, a, 0, 1);
    v128.store(target, b, 16, 1);
  }
  return <u64>(<u32>i8x16.bitmask(i8x16.eq(code, i8x16.splat(0))));
}

// @ts-ignore: decorator
@inline
function decode(from: usize, count: usize, wide: bool, first: u32, to: usize, numEscapes: usize, list: usize): i32 {
  const signs = wide ? from + (count << 1) : from;
  let at = signs + count;
  let escape = at + 3 * ((count + 7) >> 3);
  const escapesEnd = escape + numEscapes;
  const before = i8x16.splat(<i8>(first - 1));
  const seven = i8x16.splat(7);
  const whole = count & ~(blockSize - 1);
  for (let tile: usize = 0; tile < whole; tile += tileSize) {
    const tileEnd = min(tile + tileSize, whole);
    let listEnd = list;
    for (let i = tile; i < tileEnd; i += blockSize, at += blockCodeBytes) {
      const x = v128.load(at, 0, 1);
      const y = v128.load(at, 16, 1);
      const z = v128.load(at, 32, 1);
      let outside = decode16(v128.and(x, seven), i, wide, before, from, signs, to);
      outside |= decode16(v128.and(i16x8.shr_u(x, 3), seven), i + 16, wide, before, from, signs, to) << 16;
      const c2 = v128.bitselect(i16x8.shl(y, 2), i16x8.shr_u(x, 6), i8x16.splat(4));
      outside |= decode16(v128.and(c2, seven), i + 32, wide, before, from, signs, to) << 32;
      outside |= decode16(v128.and(i16x8.shr_u(y, 1), seven), i + 48, wide, before, from, signs, to) << 48;
      let outsideToo = decode16(v128.and(i16x8.shr_u(y, 4), seven), i + 64, wide, before, from, signs, to);
      const c5 = v128.bitselect(i16x8.shr_u(y, 7), i16x8.shl(z, 1), i8x16.splat(1));
      outsideToo |= decode16(v128.and(c5, seven), i + 80, wide, before, from, signs, to) << 16;
      outsideToo |= decode16(v128.and(i16x8.shr_u(z, 2), seven), i + 96, wide, before, from, signs, to) << 32;
      outsideToo |= decode16(v128.and(i16x8.shr_u(z, 5), seven), i + 112, wide, before, from, signs, to) << 48;
      listEnd = listBits(outside, i - tile, listEnd);
      listEnd = listBits(outsideToo, i - tile + 64, listEnd);
    }
    if (escape + ((listEnd - list) >> 1) > escapesEnd) return 1;
    let coded: u32 = 0;
    for (let item = list; item < listEnd; item += 2) {
      const i = tile + load<u16>(item);
      const exponent: u32 = load<u8>(escape++);
      coded |= <u32>(exponent - first <= 6);
      setUpperHalf(to, i, joinHalf(load<u8>(signs + i), exponent), wide);
    }
    if (coded) return 2;
  }
  const rest = count - whole;
  const planeBytes = (rest + 7) >> 3;
  for (let j: usize = 0; j < rest; j++) {
    const i = whole + j;
    const plane = at + (j >> 3);
    const bit = <u32>(j & 7);
    const code =
      ((<u32>load<u8>(plane) >> bit) & 1) |
      (((<u32>load<u8>(plane + planeBytes) >> bit) & 1) << 1) |
      (((<u32>load<u8>(plane + 2 * planeBytes) >> bit) & 1) << 2);
    let exponent = first - 1 + code;
    if (code === 0) {
      if (escape === escapesEnd) return 1;
      exponent = load<u8>(escape++);
      if (exponent - first <= 6) return 2;
    }
    if (wide) store<u16>(to + (i << 2), load<u16>(from + (i << 1)));
    setUpperHalf(to, i, joinHalf(load<u8>(signs + i), exponent), wide);
  }
  if (escape !== escapesEnd) return 1;
  if (rest & 7) {
    const last = at + planeBytes - 1;
    const bits: u32 = <u32>load<u8>(last) | <u32>load<u8>(last + planeBytes) | <u32>load<u8>(last + 2 * planeBytes);
    if (bits >> (<u32>rest & 7)) return 3;
  }
  return 0;
}

/**
 * Decodes `count` elements from the bytes after a header. The caller has checked that the number of bytes matches the
 * header, and provides `listBytes` of memory at `list`. Returns 0 on success, 1 if the number of escapes is wrong, 2 if
 * an escape has an exponent inside the window, and 3 if a bit after the last element is set.
 */
export function decodeBf16(from: usize, count: usize, first: u32, to: usize, numEscapes: usize, list: usize): i32 {
  return decode(from, count, false, first, to, numEscapes, list);
}

export function decodeF32(from: usize, count: usize, first: u32, to: usize, numEscapes: usize, list: usize): i32 {
  return decode(from, count, true, first, to, numEscapes, list);
}
