// Counts of values in bins of equal width. Each operation rounds as in the reference, so counts match exactly.

/** Smallest normal f32. Numbers of smaller magnitude are treated as 0. */
const SMALLEST: f32 = reinterpret<f32>(0x00800000);
const GREATEST_SUBNORMAL: f32 = reinterpret<f32>(0x007fffff);
/** Histogram: exclusive upper bound of the width of the range, 2^126. In a wider range, no values are counted. */
const WIDEST: f32 = reinterpret<f32>(0x7e800000);
/**
 * Minimum bin width for the vector code, 2^-96. With bins of this width, flushing numbers below `SMALLEST` to 0 moves
 * no value to another bin.
 */
const WIDE_BIN: f32 = reinterpret<f32>(0x0f800000);

// @ts-ignore: decorator
@inline
function flush(x: f32): f32 {
  return abs<f32>(x) < SMALLEST ? 0 : x;
}

// @ts-ignore: decorator
@inline
function countAt(at: usize): void {
  store<i32>(at, load<i32>(at) + 1);
}

/** Increments the counts at four addresses. */
// @ts-ignore: decorator
@inline
function countAt4(addresses: v128): void {
  const even = i64x2.extract_lane(addresses, 0);
  const odd = i64x2.extract_lane(addresses, 1);
  countAt(<usize>(<u32>even));
  countAt(<usize>(<u32>(even >>> 32)));
  countAt(<usize>(<u32>odd));
  countAt(<usize>(<u32>(odd >>> 32)));
}

/** Returns the bins of four values; -1 for values outside of the range. */
// @ts-ignore: decorator
@inline
function bins4(x: v128, low: v128, high: v128, origin: v128, scale: v128, last: v128): v128 {
  const inside = v128.and(f32x4.ge(x, low), f32x4.le(x, high));
  const position = f32x4.pmin(last, f32x4.mul(f32x4.sub(x, origin), scale));
  // Inside the range, positions are from 0 to `last`, for which both instructions return the same result.
  const bin = ASC_FEATURE_RELAXED_SIMD ? i32x4.relaxed_trunc_f32x4_s(position) : i32x4.trunc_sat_f32x4_s(position);
  return v128.or(bin, v128.not(inside));
}

/**
 * Counts how many values of `x` fall into each of `bins` equal bins in [low, high]; the operator documents the rounding
 * rule. `scratch` holds four counts per bin, and four counts for values outside of the range. Adjacent values often
 * fall into the same bin, and with a single count per bin, their increments would wait for each other.
 */
export function histogram(x: usize, lowest: usize, highest: usize, counts: usize, n: i32, bins: i32, scratch: usize): void {
  const low = flush(load<f32>(lowest));
  const high = flush(load<f32>(highest));
  const width = flush(high - low);
  const scale = <f32>bins / width;
  memory.fill(counts, 0, (<usize>bins) << 2);
  if (!(low <= high && width < WIDEST)) return;

  const last = <f32>(bins - 1);
  const first = scratch + 16;
  memory.fill(scratch, 0, (<usize>(bins + 1)) << 4);
  let i = 0;
  if (ASC_FEATURE_SIMD) {
    const lows = f32x4.splat(low == 0 ? -GREATEST_SUBNORMAL : low);
    const highs = f32x4.splat(high == 0 ? GREATEST_SUBNORMAL : high);
    const origins = f32x4.splat(low);
    const scales = f32x4.splat(scale);
    const lasts = f32x4.splat(last);
    const begins = i32x4.add(i32x4.splat(<i32>first), i32x4(0, 4, 8, 12));
    for (const end = width >= <f32>bins * WIDE_BIN ? n - 8 : -1; i <= end; i += 8) {
      const at = x + ((<usize>i) << 2);
      const a = bins4(v128.load(at), lows, highs, origins, scales, lasts);
      const b = bins4(v128.load(at, 16), lows, highs, origins, scales, lasts);
      countAt4(i32x4.add(i32x4.shl(a, 4), begins));
      countAt4(i32x4.add(i32x4.shl(b, 4), begins));
    }
  }
  // If the scale is infinite, its product with 0 would be NaN for x = low. In this case all values in the range are
  // counted in the last bin.
  const pointed = scale > f32.MAX_VALUE;
  for (; i < n; i++) {
    const own = flush(load<f32>(x + ((<usize>i) << 2)));
    if (!(own >= low && own <= high)) continue;
    const bin = pointed ? bins - 1 : <i32>min<f32>(flush(own - low) * scale, last);
    countAt(first + ((<usize>bin) << 4) + ((<usize>(i & 3)) << 2));
  }
  for (let bin = 0; bin < bins; bin++) {
    const at = first + ((<usize>bin) << 4);
    store<i32>(counts + ((<usize>bin) << 2), load<i32>(at) + load<i32>(at, 4) + load<i32>(at, 8) + load<i32>(at, 12));
  }
}
