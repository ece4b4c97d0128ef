// Threefry2x32-20, four counters at once. Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC'11,
// §4.
import { addI, orB, shlI, shrU, splatBits, xorB } from "./vectors";

/**
 * Returns the new y of one of the twenty Threefry rounds: y, rotated left by `by` bits, XOR x. The caller has already
 * computed the new x.
 */
// @ts-ignore: decorator
@inline
function mix<T>(y: T, by: i32, x: T): T {
  return xorB<T>(orB<T>(shlI<T>(y, by), shrU<T>(y, 32 - by)), x);
}

/** Encrypts the counters (`low`, `high`) with the key, and writes the two words of each counter next to each other. */
// @ts-ignore: decorator
@inline
function threefry<T>(key0: i32, key1: i32, low: T, high: i32, output: usize): void {
  const key2 = 0x1bd11bda ^ key0 ^ key1;
  let x = addI<T>(low, splatBits<T>(key0));
  let y = splatBits<T>(high + key1);
  x = addI<T>(x, y);
  y = mix<T>(y, 13, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 15, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 26, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 6, x);
  x = addI<T>(x, splatBits<T>(key1));
  y = addI<T>(y, splatBits<T>(key2 + 1));
  x = addI<T>(x, y);
  y = mix<T>(y, 17, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 29, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 16, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 24, x);
  x = addI<T>(x, splatBits<T>(key2));
  y = addI<T>(y, splatBits<T>(key0 + 2));
  x = addI<T>(x, y);
  y = mix<T>(y, 13, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 15, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 26, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 6, x);
  x = addI<T>(x, splatBits<T>(key0));
  y = addI<T>(y, splatBits<T>(key1 + 3));
  x = addI<T>(x, y);
  y = mix<T>(y, 17, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 29, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 16, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 24, x);
  x = addI<T>(x, splatBits<T>(key1));
  y = addI<T>(y, splatBits<T>(key2 + 4));
  x = addI<T>(x, y);
  y = mix<T>(y, 13, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 15, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 26, x);
  x = addI<T>(x, y);
  y = mix<T>(y, 6, x);
  x = addI<T>(x, splatBits<T>(key2));
  y = addI<T>(y, splatBits<T>(key0 + 5));
  if (isVector<T>()) {
    v128.store(output, v128.shuffle<i32>(x, y, 0, 4, 1, 5));
    v128.store(output, v128.shuffle<i32>(x, y, 2, 6, 3, 7), 16);
  } else {
    store<T>(output, x);
    store<T>(output, y, 4);
  }
}

/**
 * Writes random words `first` … `last` − 1; `first` is even. Word i is word `i mod 2` at counter `(⌊i/2⌋, 0)`.
 * `scratch` holds 8 bytes.
 */
export function randomBits(key: usize, output: usize, first: i32, last: i32, scratch: usize): void {
  const key0 = load<i32>(key);
  const key1 = load<i32>(key, 4);
  let i = first;
  if (ASC_FEATURE_SIMD) {
    for (; i + 8 <= last; i += 8) threefry<v128>(key0, key1, i32x4.add(i32x4.splat(i >> 1), i32x4(0, 1, 2, 3)), 0, output + ((<usize>i) << 2));
  }
  for (; i + 2 <= last; i += 2) threefry<f32>(key0, key1, reinterpret<f32>(i >> 1), 0, output + ((<usize>i) << 2));
  if (i < last) {
    threefry<f32>(key0, key1, reinterpret<f32>(i >> 1), 0, scratch);
    store<u32>(output + ((<usize>i) << 2), load<u32>(scratch));
  }
}

/** Writes a derived key: counter `(data, 1)` encrypted with the key. */
export function foldIn(key: usize, data: usize, output: usize): void {
  threefry<f32>(load<i32>(key), load<i32>(key, 4), load<f32>(data), 1, output);
}
