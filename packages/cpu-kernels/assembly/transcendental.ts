// Elementary functions on vectors or single lanes, accurate to about two units in the last place (see
// test/transcendental.test.ts). Polynomials are least-squares fits at Chebyshev nodes, weighted for relative error.
import {
  absF, addF, addI, andB, divF, eqF, fromI, leF, ltF, maddF, mulF, nearestF, negF, nmaddF, notB, orB, pmaxF, pminF, select, shlI, shrI, splat,
  splatBits, sqrtF, subF, subI, truncI, xorB,
} from "./vectors";

// High part of ln 2. It has few enough bits that its product with an exponent is exact.
const LN2_HIGH: f32 = 0.693359375;
const LN2_LOW: f32 = -2.12194440e-4;
const LOG2_E: f32 = 1.4426950408889634;

/** Returns `e^r - 1` for |r| ≤ ln 2 / 2. */
// @ts-ignore: decorator
@inline
function expm1Reduced<T>(r: T): T {
  let q = maddF<T>(splat<T>(0.0013946455351520307), r, splat<T>(0.008369157164026484));
  q = maddF<T>(q, r, splat<T>(0.04166626301289396));
  q = maddF<T>(q, r, splat<T>(0.1666651594291064));
  q = maddF<T>(q, r, splat<T>(0.5000000080843973));
  return maddF<T>(q, mulF<T>(r, r), r);
}

/** Returns `2^n` for an integer -126 ≤ n ≤ 127. */
// @ts-ignore: decorator
@inline
function powerOfTwo<T>(n: T): T {
  return shlI<T>(addI<T>(n, splatBits<T>(127)), 23);
}

/** Returns `e^x`. Overflows to Infinity, underflows gradually. */
// @ts-ignore: decorator
@inline
export function expOf<T>(a: T): T {
  const x = pmaxF<T>(pminF<T>(a, splat<T>(89.0)), splat<T>(-104.0));
  const n = nearestF<T>(mulF<T>(x, splat<T>(LOG2_E)));
  const r = nmaddF<T>(n, splat<T>(LN2_LOW), nmaddF<T>(n, splat<T>(LN2_HIGH), x));
  // The scale is computed as two factors with half of the exponent each, because 2^128 and 2^-150 are not representable
  // as one factor.
  const whole = truncI<T>(n);
  const half = shrI<T>(whole, 1);
  const first = powerOfTwo<T>(half);
  const mantissa = maddF<T>(expm1Reduced<T>(r), first, first);
  return mulF<T>(mantissa, powerOfTwo<T>(subI<T>(whole, half)));
}

/** Returns `e^x` for |x| ≤ 87, with a single scale factor and without overflow checks. */
// @ts-ignore: decorator
@inline
function expModerate<T>(x: T): T {
  const n = nearestF<T>(mulF<T>(x, splat<T>(LOG2_E)));
  const r = nmaddF<T>(n, splat<T>(LN2_LOW), nmaddF<T>(n, splat<T>(LN2_HIGH), x));
  const scale = powerOfTwo<T>(truncI<T>(n));
  return maddF<T>(expm1Reduced<T>(r), scale, scale);
}

/** Returns the natural logarithm. */
// @ts-ignore: decorator
@inline
export function logOf<T>(a: T): T {
  const tiny = ltF<T>(a, splat<T>(1.17549435e-38));
  const x = select<T>(tiny, mulF<T>(a, splat<T>(16777216.0)), a);
  // Split x = 2^e · m with √½ ≤ m < √2.
  const shifted = subI<T>(x, splatBits<T>(0x3f3504f3));
  const e = addF<T>(fromI<T>(shrI<T>(shifted, 23)), select<T>(tiny, splat<T>(-24.0), splat<T>(0.0)));
  const f = subF<T>(addI<T>(andB<T>(shifted, splatBits<T>(0x007fffff)), splatBits<T>(0x3f3504f3)), splat<T>(1.0));
  let p = maddF<T>(splat<T>(-0.07660818946822809), f, splat<T>(0.12786330529654594));
  p = maddF<T>(p, f, splat<T>(-0.13161605747254987));
  p = maddF<T>(p, f, splat<T>(0.14197876634039783));
  p = maddF<T>(p, f, splat<T>(-0.1662275245843356));
  p = maddF<T>(p, f, splat<T>(0.20001412357387757));
  p = maddF<T>(p, f, splat<T>(-0.25000846213122185));
  p = maddF<T>(p, f, splat<T>(0.33333329030490194));
  const square = mulF<T>(f, f);
  let tail = mulF<T>(mulF<T>(p, f), square);
  tail = maddF<T>(e, splat<T>(LN2_LOW), tail);
  tail = nmaddF<T>(splat<T>(0.5), square, tail);
  const finite = maddF<T>(e, splat<T>(LN2_HIGH), addF<T>(f, tail));
  const atZero = select<T>(eqF<T>(a, splat<T>(0.0)), splat<T>(-Infinity), finite);
  const valid = select<T>(ltF<T>(a, splat<T>(0.0)), splat<T>(NaN), atZero);
  // Infinity and NaN are returned unchanged.
  return select<T>(ltF<T>(a, splat<T>(Infinity)), valid, a);
}

/** Returns `tanh x = u / (u + 2)` with `u = e^(2x) - 1`. */
// @ts-ignore: decorator
@inline
export function tanhOf<T>(a: T): T {
  // For |x| ≥ 9.01, the result rounds to ±1.
  const x = pmaxF<T>(pminF<T>(addF<T>(a, a), splat<T>(18.1)), splat<T>(-18.1));
  const n = nearestF<T>(mulF<T>(x, splat<T>(LOG2_E)));
  const r = nmaddF<T>(n, splat<T>(LN2_LOW), nmaddF<T>(n, splat<T>(LN2_HIGH), x));
  const scale = powerOfTwo<T>(truncI<T>(n));
  const u = maddF<T>(expm1Reduced<T>(r), scale, subF<T>(scale, splat<T>(1.0)));
  return divF<T>(u, addF<T>(u, splat<T>(2.0)));
}

/** Returns `1 / (1 + e^-x)`. Negative x use `e^x / (1 + e^x)`, so that small results keep their relative accuracy. */
// @ts-ignore: decorator
@inline
export function sigmoidOf<T>(a: T): T {
  const u = expOf<T>(negF<T>(absF<T>(a)));
  const one = splat<T>(1.0);
  return divF<T>(select<T>(ltF<T>(a, splat<T>(0.0)), u, one), addF<T>(u, one));
}

/** Returns `max(x, 0) + log(1 + e^-|x|)`. */
// @ts-ignore: decorator
@inline
export function softplusOf<T>(a: T): T {
  const u = expOf<T>(negF<T>(absF<T>(a)));
  const w = addF<T>(u, splat<T>(1.0));
  // The rounding error of 1 + u is added to first order, so that the result is accurate for small u.
  const lost = divF<T>(subF<T>(u, subF<T>(w, splat<T>(1.0))), w);
  return addF<T>(pmaxF<T>(a, splat<T>(0.0)), addF<T>(logOf<T>(w), lost));
}

/** Returns `erf x` for |x| ≤ 1. */
// @ts-ignore: decorator
@inline
function erfNear<T>(a: T): T {
  const z = mulF<T>(a, a);
  let near = maddF<T>(splat<T>(7.882497109669944e-5), z, splat<T>(-0.0008018854992645193));
  near = maddF<T>(near, z, splat<T>(0.005189311942668474));
  near = maddF<T>(near, z, splat<T>(-0.026854328796056415));
  near = maddF<T>(near, z, splat<T>(0.1128359746348775));
  near = maddF<T>(near, z, splat<T>(-0.376126269035804));
  near = maddF<T>(near, z, splat<T>(0.12837916588150267));
  return maddF<T>(near, a, a);
}

/** Returns `1 - erf x` for x ≥ 1, as the exponential of a polynomial; 0 above 4. */
// @ts-ignore: decorator
@inline
function erfcFar<T>(t: T): T {
  let far = maddF<T>(splat<T>(1.6140616101718177e-6), t, splat<T>(-4.559062259197016e-5));
  far = maddF<T>(far, t, splat<T>(0.0005927695391132622));
  far = maddF<T>(far, t, splat<T>(-0.004740222347929312));
  far = maddF<T>(far, t, splat<T>(0.02636471738164925));
  far = maddF<T>(far, t, splat<T>(-0.10997824516211654));
  far = maddF<T>(far, t, splat<T>(-0.6319370936295596));
  far = maddF<T>(far, t, splat<T>(-1.130166675532402));
  far = maddF<T>(far, t, splat<T>(0.0003032129761256501));
  return andB<T>(expModerate<T>(far), notB<T>(ltF<T>(splat<T>(4.0), t)));
}

/** Returns the error function of x. */
// @ts-ignore: decorator
@inline
export function erfOf<T>(a: T): T {
  const x = absF<T>(a);
  const magnitude = subF<T>(splat<T>(1.0), erfcFar<T>(x));
  const sign = andB<T>(a, splatBits<T>(0x80000000));
  return select<T>(leF<T>(x, splat<T>(1.0)), erfNear<T>(a), orB<T>(magnitude, sign));
}

/** Returns `x/2 · (1 + erf(x/√2))`. Negative x use `1 - erf`, which does not cancel. */
// @ts-ignore: decorator
@inline
export function geluOf<T>(a: T): T {
  const half = mulF<T>(a, splat<T>(0.5));
  const z = mulF<T>(a, splat<T>(0.7071067811865476));
  const x = absF<T>(z);
  const rest = erfcFar<T>(x);
  const far = select<T>(ltF<T>(a, splat<T>(0.0)), rest, subF<T>(splat<T>(2.0), rest));
  return mulF<T>(half, select<T>(leF<T>(x, splat<T>(1.0)), addF<T>(splat<T>(1.0), erfNear<T>(z)), far));
}

/**
 * Returns `x/2 · (1 + tanh u)` with `u = √(2/π) (x + 0.044715 x³)`, computed as `x · sigmoid(2u)`, which does not
 * cancel.
 */
// @ts-ignore: decorator
@inline
export function geluTanhOf<T>(a: T): T {
  const twice = mulF<T>(mulF<T>(a, splat<T>(1.5957691216057308)), maddF<T>(splat<T>(0.044715), mulF<T>(a, a), splat<T>(1.0)));
  return mulF<T>(a, sigmoidOf<T>(twice));
}

/** Returns the sign of a number: -1, 0 or 1; NaN for NaN. */
// @ts-ignore: decorator
@inline
export function signOf<T>(a: T): T {
  const one = orB<T>(andB<T>(a, splatBits<T>(0x80000000)), splat<T>(1.0));
  return select<T>(orB<T>(ltF<T>(a, splat<T>(0.0)), ltF<T>(splat<T>(0.0), a)), one, a);
}

// @ts-ignore: decorator
@inline
export function rsqrtOf<T>(a: T): T {
  return divF<T>(splat<T>(1.0), sqrtF<T>(a));
}

/** Returns a mask with all bits set if x is finite, and clear if not. */
// @ts-ignore: decorator
@inline
export function finiteOf<T>(a: T): T {
  return ltF<T>(absF<T>(a), splat<T>(Infinity));
}

/** Returns `-x` in two's complement if the mask is set, otherwise x. */
// @ts-ignore: decorator
@inline
export function negateWhere<T>(mask: T, a: T): T {
  return subI<T>(xorB<T>(a, mask), mask);
}
