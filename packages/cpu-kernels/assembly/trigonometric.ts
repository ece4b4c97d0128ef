// Sine and cosine of any f32, with an absolute error of about 6e-8. Angles below 2^26 are reduced in f64, larger angles
// with the bits of 2/π.
import { addI, andB, maddF, mulF, neI, select, shlI, splat, splatBits, xorB } from "./vectors";

const TWO_OVER_PI: f64 = 0.6366197723675814;
// High part of π/2. It has 27 bits, so that its product with a quotient below 2^26 is exact.
const HALF_PI_HIGH: f64 = 1.570796325802803;
const HALF_PI_LOW: f64 = 9.920935796805404e-10;
const LARGE: f32 = 67108864.0;

/** Returns the sine (`turn` = 0) or cosine (`turn` = 1) of `r + n π/2`, for |r| ≤ π/4. */
// @ts-ignore: decorator
@inline
function fromReduced<T>(r: T, n: T, turn: i32): T {
  const z = mulF<T>(r, r);
  let sine = maddF<T>(splat<T>(-0.0001951272492228356), z, splat<T>(0.008332142411705646));
  sine = maddF<T>(sine, z, splat<T>(-0.1666665431663616));
  sine = maddF<T>(mulF<T>(sine, z), r, r);
  let cosine = maddF<T>(splat<T>(2.4432220225713793e-5), z, splat<T>(-0.0013887310531180727));
  cosine = maddF<T>(cosine, z, splat<T>(0.04166664561985709));
  cosine = maddF<T>(cosine, z, splat<T>(-0.5));
  cosine = maddF<T>(cosine, z, splat<T>(1.0));
  const quarter = addI<T>(n, splatBits<T>(turn));
  const swapped = neI<T>(andB<T>(quarter, splatBits<T>(1)), splatBits<T>(0));
  const sign = shlI<T>(andB<T>(quarter, splatBits<T>(2)), 30);
  return xorB<T>(select<T>(swapped, cosine, sine), sign);
}

/** Returns 64 bits of 2/π. The first bit of word 0 has weight 1/2. */
function twoOverPiWord(word: i32): u64 {
  if (word == 0) return 0xa2f9836e4e441529;
  if (word == 1) return 0xfc2757d1f534ddc0;
  if (word == 2) return 0xdb6295993c439041;
  return 0xfe5163abdebbc561;
}

/** Returns the 32 bits of 2/π that start at bit `from` (≥ 0). */
function twoOverPiBits(from: i32): u64 {
  const word = from >> 6;
  const offset = <u64>(from & 63);
  const head = twoOverPiWord(word) << offset;
  return (offset == 0 ? head : head | (twoOverPiWord(word + 1) >> (64 - offset))) >> 32;
}

/**
 * Returns the sine (`turn` = 0) or cosine (`turn` = 1) of an angle of any magnitude. For large angles, let x = m·2^s
 * with a 24-bit m. Then x·2/π mod 4 depends only on the 96 bits of 2/π after the bits whose product with m·2^s is a
 * multiple of 4. Source: Payne and Hanek, SIGNUM Newsletter 18 (1983).
 */
export function trigonometric(x: f32, turn: i32): f32 {
  if (abs(x) < LARGE) {
    const wide = <f64>x;
    const n = nearest<f64>(wide * TWO_OVER_PI);
    return fromReduced<f32>(<f32>(wide - n * HALF_PI_HIGH - n * HALF_PI_LOW), reinterpret<f32>(<i32>n), turn);
  }
  if (!(abs(x) < Infinity)) return NaN;
  const bits = reinterpret<u32>(x);
  const m = <u64>((bits & 0x7fffff) | 0x800000);
  const s = <i32>((bits >> 23) & 0xff) - 150;
  let product = ((m * twoOverPiBits(s - 2)) << 32) + m * twoOverPiBits(s + 30) + ((m * twoOverPiBits(s + 62)) >> 32);
  let n = <i32>((product + (1 << 61)) >> 62);
  product -= (<u64>n) << 62;
  let r = <f64>(<i64>product) * 3.4061215800865545e-19; // scale of the product: π/2 · 2^-62
  if (x < 0) {
    r = -r;
    n = -n;
  }
  return fromReduced<f32>(<f32>r, reinterpret<f32>(n), turn);
}

/** Variant of `trigonometric` for four lanes. */
function trigonometricLanes(x: v128, turn: i32): v128 {
  if (!i32x4.all_true(f32x4.lt(f32x4.abs(x), f32x4.splat(LARGE)))) {
    let result = f32x4.splat(trigonometric(f32x4.extract_lane(x, 0), turn));
    result = f32x4.replace_lane(result, 1, trigonometric(f32x4.extract_lane(x, 1), turn));
    result = f32x4.replace_lane(result, 2, trigonometric(f32x4.extract_lane(x, 2), turn));
    return f32x4.replace_lane(result, 3, trigonometric(f32x4.extract_lane(x, 3), turn));
  }
  const low = f64x2.promote_low_f32x4(x);
  const high = f64x2.promote_low_f32x4(v128.shuffle<i32>(x, x, 2, 3, 2, 3));
  const nLow = f64x2.nearest(f64x2.mul(low, f64x2.splat(TWO_OVER_PI)));
  const nHigh = f64x2.nearest(f64x2.mul(high, f64x2.splat(TWO_OVER_PI)));
  const rLow = reduce(low, nLow);
  const rHigh = reduce(high, nHigh);
  const n = v128.shuffle<i32>(i32x4.trunc_sat_f64x2_s_zero(nLow), i32x4.trunc_sat_f64x2_s_zero(nHigh), 0, 1, 4, 5);
  const r = v128.shuffle<i32>(f32x4.demote_f64x2_zero(rLow), f32x4.demote_f64x2_zero(rHigh), 0, 1, 4, 5);
  return fromReduced<v128>(r, n, turn);
}

// @ts-ignore: decorator
@inline
function reduce(x: v128, n: v128): v128 {
  return f64x2.sub(f64x2.sub(x, f64x2.mul(n, f64x2.splat(HALF_PI_HIGH))), f64x2.mul(n, f64x2.splat(HALF_PI_LOW)));
}

// @ts-ignore: decorator
@inline
export function sinOf<T>(x: T): T {
  if (isVector<T>()) return trigonometricLanes(x, 0);
  else return trigonometric(x, 0);
}

// @ts-ignore: decorator
@inline
export function cosOf<T>(x: T): T {
  if (isVector<T>()) return trigonometricLanes(x, 1);
  else return trigonometric(x, 1);
}
