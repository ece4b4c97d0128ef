// Vector width and fused multiply-add of the current build. A kernel is a vector loop under `if (ASC_FEATURE_SIMD)`,
// followed by a scalar loop for the remaining elements. In the scalar build, the second loop does all the work.

/** Returns a · b + c in each lane. Rounds once in the relaxed build, twice in the plain build. */
// @ts-ignore: decorator
@inline
export function madd(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c);
  return f32x4.add(f32x4.mul(a, b), c);
}

/**
 * Bytes per block of terms that are summed in f32, 128 terms in each lane. In longer rows, the block sums are added in
 * f64, because the rounding error of one long f32 sum grows with its length, especially if all terms are equal.
 */
export const BLOCK_BYTES: usize = ASC_FEATURE_SIMD ? 2048 : 512;

/** Returns the sum of the four lanes, in a fixed order. */
// @ts-ignore: decorator
@inline
export function sumLanes(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}

/** Returns the largest of the four lanes, or NaN if a lane is NaN. */
// @ts-ignore: decorator
@inline
export function maxLanes(v: v128): f32 {
  return max(max(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)), max(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)));
}

/**
 * Transposes four rows of four floats at `from`, `stride` bytes apart. Writes element k of all four rows to
 * `to + k · step`.
 */
// @ts-ignore: decorator
@inline
export function transpose4(from: usize, stride: usize, to: usize, step: usize): void {
  const r0 = v128.load(from);
  const r1 = v128.load(from + stride);
  const r2 = v128.load(from + 2 * stride);
  const r3 = v128.load(from + 3 * stride);
  const t0 = v128.shuffle<f32>(r0, r1, 0, 4, 1, 5);
  const t1 = v128.shuffle<f32>(r0, r1, 2, 6, 3, 7);
  const t2 = v128.shuffle<f32>(r2, r3, 0, 4, 1, 5);
  const t3 = v128.shuffle<f32>(r2, r3, 2, 6, 3, 7);
  v128.store(to, v128.shuffle<i64>(t0, t2, 0, 2));
  v128.store(to + step, v128.shuffle<i64>(t0, t2, 1, 3));
  v128.store(to + 2 * step, v128.shuffle<i64>(t1, t3, 0, 2));
  v128.store(to + 3 * step, v128.shuffle<i64>(t1, t3, 1, 3));
}
