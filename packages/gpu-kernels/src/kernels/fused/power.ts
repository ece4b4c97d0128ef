import { wgsl } from "../../wgsl.ts";

// Computes a^b = e^(b log a) with f32 arithmetic only. The logarithm and its product with b are sums of two floats. The
// first float has 12 bits, so that products of first parts are exact.

/** WGSL of the power functions, by function name. */
export const powerFunctions: { readonly [name: string]: string } = {
  // |a|^b, with log m = 2 atanh s and s = (m-1)/(m+1), for √½ ≤ m < √2.
  power_magnitude: wgsl`
    fn power_magnitude(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
      let tiny = a < vec4<f32>(0x1p-126);
      let x = select(a, a * 16777216.0, tiny);
      let shifted = bitcast<vec4<i32>>(x) - vec4<i32>(0x3f3504f3);
      let e = vec4<f32>(shifted >> vec4<u32>(23u)) - select(vec4<f32>(), vec4<f32>(24.0), tiny);
      let m = bitcast<vec4<f32>>((shifted & vec4<i32>(0x007fffff)) + vec4<i32>(0x3f3504f3));
      let f = m - 1.0;
      let s = f / (m + 1.0);
      let s_high = leading(s);
      let d_high = leading(m + 1.0);
      let d_low = m - settled(d_high - 1.0);
      let s_low = (settled(f - s_high * d_high) - s_high * d_low) / (m + 1.0);
      // log m = 2/3 · s · (3 + s² + 3/5 s⁴ + 3/7 s⁶ + …)
      let z = s * s;
      var series = fma(vec4<f32>(0.23076923), z, vec4<f32>(0.27272727));
      series = fma(series, z, vec4<f32>(0.33333333));
      series = fma(series, z, vec4<f32>(0.42857143));
      series = fma(series, z, vec4<f32>(0.6));
      let rest_square = fma(series * z, z, s_low * (s_high + s));
      let square = s_high * s_high;
      let t_high = leading((3.0 + square) + rest_square);
      let t_low = rest_square - settled(settled(t_high - 3.0) - square);
      let u = settled(s_high * t_high);
      let v = fma(s_low, t_high, t_low * s);
      let p_high = leading(u + v);
      let p_low = v - settled(p_high - u);
      // 2/3 in two parts, the first of 12 bits.
      let m_high = settled(p_high * 0.66650390625);
      let m_low = fma(p_high, vec4<f32>(0.00016276042), p_low * 0.6666667);
      let whole = settled(e * 0.693359375);
      let log_high = leading(whole + m_high);
      let log_low = ((whole - log_high) + m_high) + fma(e, vec4<f32>(-2.12194440e-4), m_low);
      // Beyond 1e10 every product has left the range.
      let y = clamp(b, vec4<f32>(-1e10), vec4<f32>(1e10));
      let y_high = leading(y);
      let first = settled(y_high * log_high);
      let second = fma(y - y_high, log_high, y * log_low);
      let sum = first + second;
      let bounded = clamp(sum, vec4<f32>(-104.0), vec4<f32>(89.0));
      let t = leading(bounded);
      let rest = select(vec4<f32>(), (first - t) + second, abs(sum) < vec4<f32>(104.0));
      let n = round(bounded * 1.4426950408889634);
      let half = floor(n * 0.5);
      let scale = power_of_two(half);
      return fma(expm1_reduced(reduce_ln2(t, n) + rest), scale, scale) * power_of_two(n - half);
    }
  `,
  // a^b with the special cases of IEEE 754 pow.
  power_of: wgsl`
    fn power_of(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
      let zero = vec4<f32>();
      let infinity = vec4<f32>(bitcast<f32>(0x7f800000u | sizes.never));
      let nan = vec4<f32>(bitcast<f32>(0x7fc00000u | sizes.never));
      let bits = bitcast<vec4<u32>>(a);
      let x = abs(a);
      let at_end = (x == zero) | ((bits & vec4<u32>(0x7fffffffu)) == vec4<u32>(0x7f800000u));
      let magnitude = select(power_magnitude(x, b), select(infinity, zero, (x == zero) == (b > zero)), at_end);
      let whole = floor(b) == b;
      // From 2^24 on every f32 is even.
      let odd = whole & (abs(b) < vec4<f32>(16777216.0)) & (floor(b * 0.5) != b * 0.5);
      let negative = (bits >> vec4<u32>(31u)) != vec4<u32>();
      let signed = select(magnitude, -magnitude, negative & odd);
      let impossible = (negative & !whole & !at_end) | is_nan(a) | is_nan(b);
      return select(select(signed, nan, impossible), vec4<f32>(1.0), (b == zero) | (a == vec4<f32>(1.0)));
    }
  `,
};
