// Primitives over T = v128 (four 32-bit lanes) or T = f32 (one lane of the scalar build), so that an algorithm is
// written once. A mask has all bits of a lane set or clear. Integers are stored in T as their bits.

// @ts-ignore: decorator
@inline
export function splat<T>(x: f32): T {
  if (isVector<T>()) return f32x4.splat(x);
  else return x;
}

// @ts-ignore: decorator
@inline
export function splatBits<T>(x: i32): T {
  if (isVector<T>()) return i32x4.splat(x);
  else return reinterpret<f32>(x);
}

// @ts-ignore: decorator
@inline
export function addF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.add(a, b);
  else return a + b;
}

// @ts-ignore: decorator
@inline
export function subF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.sub(a, b);
  else return a - b;
}

// @ts-ignore: decorator
@inline
export function mulF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.mul(a, b);
  else return a * b;
}

// @ts-ignore: decorator
@inline
export function divF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.div(a, b);
  else return a / b;
}

// @ts-ignore: decorator
@inline
export function maxF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.max(a, b);
  else return max<f32>(a, b);
}

// @ts-ignore: decorator
@inline
export function minF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.min(a, b);
  else return min<f32>(a, b);
}

// `pmax` and `pmin` return `a` if `a` is NaN, and compile to one instruction; `max` needs eight.

// @ts-ignore: decorator
@inline
export function pmaxF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.pmax(a, b);
  else return a < b ? b : a;
}

// @ts-ignore: decorator
@inline
export function pminF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.pmin(a, b);
  else return b < a ? b : a;
}

// @ts-ignore: decorator
@inline
export function sqrtF<T>(a: T): T {
  if (isVector<T>()) return f32x4.sqrt(a);
  else return sqrt<f32>(a);
}

// @ts-ignore: decorator
@inline
export function floorF<T>(a: T): T {
  if (isVector<T>()) return f32x4.floor(a);
  else return floor<f32>(a);
}

// @ts-ignore: decorator
@inline
export function ceilF<T>(a: T): T {
  if (isVector<T>()) return f32x4.ceil(a);
  else return ceil<f32>(a);
}

// @ts-ignore: decorator
@inline
export function nearestF<T>(a: T): T {
  if (isVector<T>()) return f32x4.nearest(a);
  else return nearest<f32>(a);
}

// @ts-ignore: decorator
@inline
export function absF<T>(a: T): T {
  if (isVector<T>()) return f32x4.abs(a);
  else return abs<f32>(a);
}

// @ts-ignore: decorator
@inline
export function negF<T>(a: T): T {
  if (isVector<T>()) return f32x4.neg(a);
  else return -a;
}

// @ts-ignore: decorator
@inline
export function eqF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.eq(a, b);
  else return reinterpret<f32>(-(<i32>(a == b)));
}

// @ts-ignore: decorator
@inline
export function neF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.ne(a, b);
  else return reinterpret<f32>(-(<i32>(a != b)));
}

// @ts-ignore: decorator
@inline
export function ltF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.lt(a, b);
  else return reinterpret<f32>(-(<i32>(a < b)));
}

// @ts-ignore: decorator
@inline
export function leF<T>(a: T, b: T): T {
  if (isVector<T>()) return f32x4.le(a, b);
  else return reinterpret<f32>(-(<i32>(a <= b)));
}

// @ts-ignore: decorator
@inline
export function andB<T>(a: T, b: T): T {
  if (isVector<T>()) return v128.and(a, b);
  else return reinterpret<f32>(reinterpret<i32>(a) & reinterpret<i32>(b));
}

// @ts-ignore: decorator
@inline
export function orB<T>(a: T, b: T): T {
  if (isVector<T>()) return v128.or(a, b);
  else return reinterpret<f32>(reinterpret<i32>(a) | reinterpret<i32>(b));
}

// @ts-ignore: decorator
@inline
export function xorB<T>(a: T, b: T): T {
  if (isVector<T>()) return v128.xor(a, b);
  else return reinterpret<f32>(reinterpret<i32>(a) ^ reinterpret<i32>(b));
}

// @ts-ignore: decorator
@inline
export function notB<T>(a: T): T {
  if (isVector<T>()) return v128.not(a);
  else return reinterpret<f32>(~reinterpret<i32>(a));
}

// @ts-ignore: decorator
@inline
export function addI<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.add(a, b);
  else return reinterpret<f32>(reinterpret<i32>(a) + reinterpret<i32>(b));
}

// @ts-ignore: decorator
@inline
export function subI<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.sub(a, b);
  else return reinterpret<f32>(reinterpret<i32>(a) - reinterpret<i32>(b));
}

// @ts-ignore: decorator
@inline
export function mulI<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.mul(a, b);
  else return reinterpret<f32>(reinterpret<i32>(a) * reinterpret<i32>(b));
}

// @ts-ignore: decorator
@inline
export function eqI<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.eq(a, b);
  else return reinterpret<f32>(-(<i32>(reinterpret<i32>(a) == reinterpret<i32>(b))));
}

// @ts-ignore: decorator
@inline
export function neI<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.ne(a, b);
  else return reinterpret<f32>(-(<i32>(reinterpret<i32>(a) != reinterpret<i32>(b))));
}

// @ts-ignore: decorator
@inline
export function ltI<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.lt_s(a, b);
  else return reinterpret<f32>(-(<i32>(reinterpret<i32>(a) < reinterpret<i32>(b))));
}

// @ts-ignore: decorator
@inline
export function leI<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.le_s(a, b);
  else return reinterpret<f32>(-(<i32>(reinterpret<i32>(a) <= reinterpret<i32>(b))));
}

// @ts-ignore: decorator
@inline
export function ltU<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.lt_u(a, b);
  else return reinterpret<f32>(-(<i32>(reinterpret<u32>(a) < reinterpret<u32>(b))));
}

// @ts-ignore: decorator
@inline
export function leU<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.le_u(a, b);
  else return reinterpret<f32>(-(<i32>(reinterpret<u32>(a) <= reinterpret<u32>(b))));
}

// @ts-ignore: decorator
@inline
export function maxI<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.max_s(a, b);
  else return reinterpret<f32>(max<i32>(reinterpret<i32>(a), reinterpret<i32>(b)));
}

// @ts-ignore: decorator
@inline
export function minI<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.min_s(a, b);
  else return reinterpret<f32>(min<i32>(reinterpret<i32>(a), reinterpret<i32>(b)));
}

// @ts-ignore: decorator
@inline
export function maxU<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.max_u(a, b);
  else return reinterpret<f32>(max<u32>(reinterpret<u32>(a), reinterpret<u32>(b)));
}

// @ts-ignore: decorator
@inline
export function minU<T>(a: T, b: T): T {
  if (isVector<T>()) return i32x4.min_u(a, b);
  else return reinterpret<f32>(min<u32>(reinterpret<u32>(a), reinterpret<u32>(b)));
}

// @ts-ignore: decorator
@inline
export function shlI<T>(a: T, by: i32): T {
  if (isVector<T>()) return i32x4.shl(a, by);
  else return reinterpret<f32>(reinterpret<i32>(a) << by);
}

// @ts-ignore: decorator
@inline
export function shrI<T>(a: T, by: i32): T {
  if (isVector<T>()) return i32x4.shr_s(a, by);
  else return reinterpret<f32>(reinterpret<i32>(a) >> by);
}

// @ts-ignore: decorator
@inline
export function shrU<T>(a: T, by: i32): T {
  if (isVector<T>()) return i32x4.shr_u(a, by);
  else return reinterpret<f32>(reinterpret<u32>(a) >> by);
}

// @ts-ignore: decorator
@inline
export function truncI<T>(a: T): T {
  if (isVector<T>()) return i32x4.trunc_sat_f32x4_s(a);
  else return reinterpret<f32>(truncateI(a));
}

// @ts-ignore: decorator
@inline
export function truncU<T>(a: T): T {
  if (isVector<T>()) return i32x4.trunc_sat_f32x4_u(a);
  else return reinterpret<f32>(truncateU(a));
}

/** Converts a float to an i32, rounded towards zero. The float must be in the range of i32. */
// @ts-ignore: decorator
@inline
export function truncSmall<T>(a: T): T {
  if (isVector<T>()) return ASC_FEATURE_RELAXED_SIMD ? i32x4.relaxed_trunc_f32x4_s(a) : i32x4.trunc_sat_f32x4_s(a);
  else return reinterpret<f32>(<i32>a);
}

// @ts-ignore: decorator
@inline
export function fromI<T>(a: T): T {
  if (isVector<T>()) return f32x4.convert_i32x4_s(a);
  else return <f32>reinterpret<i32>(a);
}

// @ts-ignore: decorator
@inline
export function fromU<T>(a: T): T {
  if (isVector<T>()) return f32x4.convert_i32x4_u(a);
  else return <f32>reinterpret<u32>(a);
}

// Used in builds without the saturating instruction, because the plain instruction traps if the number is out of range.
function truncateI(x: f32): i32 {
  if (x != x) return 0;
  if (x >= 2147483648.0) return i32.MAX_VALUE;
  return x <= -2147483648.0 ? i32.MIN_VALUE : <i32>x;
}

function truncateU(x: f32): u32 {
  if (x >= 4294967296.0) return u32.MAX_VALUE;
  return x >= 1.0 ? <u32>x : 0;
}

/** Returns the bits of `a` if the mask is set, otherwise the bits of `b`. */
// @ts-ignore: decorator
@inline
export function select<T>(mask: T, a: T, b: T): T {
  if (isVector<T>()) return v128.bitselect(a, b, mask);
  else return reinterpret<f32>(reinterpret<i32>(mask) != 0 ? reinterpret<i32>(a) : reinterpret<i32>(b));
}

/** Returns a · b + c. Rounds once in the relaxed build. */
// @ts-ignore: decorator
@inline
export function maddF<T>(a: T, b: T, c: T): T {
  if (isVector<T>()) {
    if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c);
    else return f32x4.add(f32x4.mul(a, b), c);
  } else return a * b + c;
}

/** Returns c - a · b. Rounds once in the relaxed build. */
// @ts-ignore: decorator
@inline
export function nmaddF<T>(a: T, b: T, c: T): T {
  if (isVector<T>()) {
    if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_nmadd(a, b, c);
    else return f32x4.sub(c, f32x4.mul(a, b));
  } else return c - a * b;
}
