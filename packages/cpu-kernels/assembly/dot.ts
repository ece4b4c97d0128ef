// Row operations on f32, such as dot products, for the steps of decompositions that are not matrix products.
import { madd, sumLanes } from "./lanes";

/**
 * Returns Σ a[i] · b[i] over `bytes` bytes. Uses four independent sums, because each addition must wait for the
 * previous addition of the same sum.
 */
// @ts-ignore: decorator
@inline
export function dot(a: usize, b: usize, bytes: usize): f32 {
  let i: usize = 0;
  let sum: f32 = 0;
  if (ASC_FEATURE_SIMD) {
    let lanes = f32x4.splat(0);
    if (bytes >= 64) {
      let second = f32x4.splat(0), third = f32x4.splat(0), fourth = f32x4.splat(0);
      for (; i + 64 <= bytes; i += 64) {
        lanes = madd(v128.load(a + i), v128.load(b + i), lanes);
        second = madd(v128.load(a + i, 16), v128.load(b + i, 16), second);
        third = madd(v128.load(a + i, 32), v128.load(b + i, 32), third);
        fourth = madd(v128.load(a + i, 48), v128.load(b + i, 48), fourth);
      }
      lanes = f32x4.add(f32x4.add(lanes, second), f32x4.add(third, fourth));
    }
    for (; i + 16 <= bytes; i += 16) lanes = madd(v128.load(a + i), v128.load(b + i), lanes);
    sum = sumLanes(lanes);
  }
  for (; i < bytes; i += 4) sum += load<f32>(a + i) * load<f32>(b + i);
  return sum;
}

/** Computes y[i] += factor · x[i] over `bytes` bytes. */
// @ts-ignore: decorator
@inline
export function addMultiple(y: usize, x: usize, factor: f32, bytes: usize): void {
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    const lanes = f32x4.splat(factor);
    for (; i + 16 <= bytes; i += 16) v128.store(y + i, madd(v128.load(x + i), lanes, v128.load(y + i)));
  }
  for (; i < bytes; i += 4) store<f32>(y + i, load<f32>(y + i) + factor * load<f32>(x + i));
}

/**
 * Returns the bits of the largest magnitude over `bytes` bytes. As integers, NaN is larger than infinity, and infinity
 * is larger than all numbers.
 */
export function largestBits(x: usize, bytes: usize): u32 {
  let i: usize = 0;
  let largest: u32 = 0;
  if (ASC_FEATURE_SIMD) {
    const mask = i32x4.splat(0x7fffffff);
    let lanes = i32x4.splat(0);
    for (; i + 16 <= bytes; i += 16) lanes = i32x4.max_u(lanes, v128.and(v128.load(x + i), mask));
    largest = max(
      max(<u32>i32x4.extract_lane(lanes, 0), <u32>i32x4.extract_lane(lanes, 1)),
      max(<u32>i32x4.extract_lane(lanes, 2), <u32>i32x4.extract_lane(lanes, 3)),
    );
  }
  for (; i < bytes; i += 4) largest = max(largest, load<u32>(x + i) & 0x7fffffff);
  return largest;
}

/** Bits of infinity. Finite numbers have smaller bits. */
export const INFINITE: u32 = 0x7f800000;

/** Fills `bytes` bytes with NaN. */
export function fillNaN(y: usize, bytes: usize): void {
  for (let i: usize = 0; i < bytes; i += 4) store<f32>(y + i, f32.NaN);
}
