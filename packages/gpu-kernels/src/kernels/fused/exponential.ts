import { wgsl } from "../../wgsl.ts";

// Exponentials and logarithms on vectors of four, accurate to about two units in the last place. WGSL allows its
// builtins an error that grows with the argument. Same formulas and coefficients as the WebAssembly kernels:
// least-squares fits at Chebyshev nodes, weighted for relative error. The result is accurate even if `fma` is not
// fused, because products with the first part of ln 2 are exact.

/** High part of ln 2. The constant has few enough bits that its product with an exponent is exact. */
const ln2High = "0.693359375";
const ln2Low = "-2.12194440e-4";

/** WGSL of exponentials, logarithms and related functions, each `(vec4<f32>) -> vec4<f32>`, by function name. */
export const exponentialFunctions: { readonly [name: string]: string } = {
  // e^r - 1 for |r| ≤ ln 2 / 2.
  expm1_reduced: wgsl`
    fn expm1_reduced(r: vec4<f32>) -> vec4<f32> {
      var q = fma(vec4<f32>(0.0013946455351520307), r, vec4<f32>(0.008369157164026484));
      q = fma(q, r, vec4<f32>(0.04166626301289396));
      q = fma(q, r, vec4<f32>(0.1666651594291064));
      q = fma(q, r, vec4<f32>(0.5000000080843973));
      return fma(q, r * r, r);
    }
  `,
  // x - n ln 2, computed with both parts of ln 2.
  reduce_ln2: wgsl`
    fn reduce_ln2(x: vec4<f32>, n: vec4<f32>) -> vec4<f32> {
      return fma(n, vec4<f32>(-(${ln2Low})), settled(fma(n, vec4<f32>(-${ln2High}), x)));
    }
  `,
  // 2^n for integers -126 ≤ n ≤ 127. The lowest bits of the float sum are n + 127.
  power_of_two: wgsl`
    fn power_of_two(n: vec4<f32>) -> vec4<f32> {
      return bitcast<vec4<f32>>(bitcast<vec4<u32>>(n + 12583039.0) << vec4<u32>(23u));
    }
  `,
  // e^x. Overflows to Infinity, underflows gradually. Computed with two factors that have half of the exponent each,
  // because 2^128 and 2^-150 are not representable as one factor.
  exp_of: wgsl`
    fn exp_of(a: vec4<f32>) -> vec4<f32> {
      let high = select(a, vec4<f32>(89.0), a > vec4<f32>(89.0));
      let x = select(high, vec4<f32>(-104.0), high < vec4<f32>(-104.0));
      let n = round(x * 1.4426950408889634);
      let first = floor(n * 0.5);
      let scale = power_of_two(first);
      return fma(expm1_reduced(reduce_ln2(x, n)), scale, scale) * power_of_two(n - first);
    }
  `,
  // e^x for |x| ≤ 87, without overflow or underflow.
  exp_moderate: wgsl`
    fn exp_moderate(x: vec4<f32>) -> vec4<f32> {
      let n = round(x * 1.4426950408889634);
      let scale = power_of_two(n);
      return fma(expm1_reduced(reduce_ln2(x, n)), scale, scale);
    }
  `,
  // log x, with x = 2^e · m and √½ ≤ m < √2. Zeros, negative numbers, Infinity and NaN are handled by their bits.
  log_of: wgsl`
    fn log_of(a: vec4<f32>) -> vec4<f32> {
      let tiny = a < vec4<f32>(0x1p-126);
      let x = select(a, a * 16777216.0, tiny);
      let shifted = bitcast<vec4<i32>>(x) - vec4<i32>(0x3f3504f3);
      let e = vec4<f32>(shifted >> vec4<u32>(23u)) - select(vec4<f32>(), vec4<f32>(24.0), tiny);
      let f = bitcast<vec4<f32>>((shifted & vec4<i32>(0x007fffff)) + vec4<i32>(0x3f3504f3)) - 1.0;
      var p = fma(vec4<f32>(-0.07660818946822809), f, vec4<f32>(0.12786330529654594));
      p = fma(p, f, vec4<f32>(-0.13161605747254987));
      p = fma(p, f, vec4<f32>(0.14197876634039783));
      p = fma(p, f, vec4<f32>(-0.1662275245843356));
      p = fma(p, f, vec4<f32>(0.20001412357387757));
      p = fma(p, f, vec4<f32>(-0.25000846213122185));
      p = fma(p, f, vec4<f32>(0.33333329030490194));
      let square = f * f;
      var tail = fma(e, vec4<f32>(${ln2Low}), p * f * square);
      tail = settled(fma(vec4<f32>(-0.5), square, tail));
      let finite = fma(e, vec4<f32>(${ln2High}), f + tail);
      let bits = bitcast<vec4<u32>>(a);
      let below = select(vec4<f32>(bitcast<f32>(0x7fc00000u | sizes.never)), vec4<f32>(bitcast<f32>(0xff800000u | sizes.never)), a == vec4<f32>());
      let positive = select(a, finite, bits < vec4<u32>(0x7f800000u));
      return select(positive, below, a <= vec4<f32>());
    }
  `,
  // tanh x = u / (u + 2) with u = e^(2x) - 1. For |x| ≥ 9.01, the result rounds to ±1.
  tanh_of: wgsl`
    fn tanh_of(a: vec4<f32>) -> vec4<f32> {
      let twice = a + a;
      let high = select(twice, vec4<f32>(18.1), twice > vec4<f32>(18.1));
      let x = select(high, vec4<f32>(-18.1), high < vec4<f32>(-18.1));
      let n = round(x * 1.4426950408889634);
      let scale = power_of_two(n);
      let u = fma(expm1_reduced(reduce_ln2(x, n)), scale, settled(scale - 1.0));
      return u / (u + 2.0);
    }
  `,
  // 1 / (1 + e^-x). Negative x use e^x / (1 + e^x), so that small results keep their relative accuracy.
  sigmoid_of: wgsl`
    fn sigmoid_of(a: vec4<f32>) -> vec4<f32> {
      let u = exp_of(-abs(a));
      return select(vec4<f32>(1.0), u, a < vec4<f32>()) / (u + 1.0);
    }
  `,
  silu_of: "fn silu_of(a: vec4<f32>) -> vec4<f32> { return a * sigmoid_of(a); }",
  // max(x, 0) + log(1 + e^-|x|). The rounding error of 1 + u is added to first order, so that the result is accurate
  // for small u.
  softplus_of: wgsl`
    fn softplus_of(a: vec4<f32>) -> vec4<f32> {
      let u = exp_of(-abs(a));
      let w = settled(u + 1.0);
      let lost = (u - (w - 1.0)) / w;
      return select(a, vec4<f32>(), a < vec4<f32>()) + (log_of(w) + lost);
    }
  `,
};
