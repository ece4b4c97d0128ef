// Vector width and fused multiply-add of the build at hand. A kernel is a vector loop under `if (ASC_FEATURE_SIMD)` followed by
// a scalar loop over the rest; in the scalar build the second loop does all of the work.

/** a · b + c in each lane; one rounding in the relaxed build, two in the plain one. */
// @ts-ignore: decorator
@inline
export function madd(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c);
  return f32x4.add(f32x4.mul(a, b), c);
}

/** Sum of the four lanes, in a fixed order. */
// @ts-ignore: decorator
@inline
export function sumLanes(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}
