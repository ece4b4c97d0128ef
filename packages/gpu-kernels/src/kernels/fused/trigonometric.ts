import { wgsl } from "../../wgsl.ts";

// Sine and cosine of any f32, four values at a time, with an absolute error of about 6e-8. Angles below 2^13 are
// reduced by π/2 in three parts, larger angles with the bits of 2/π.

/** WGSL of sine, cosine and their helper functions, by function name. */
export const trigonometricFunctions: { readonly [name: string]: string } = {
  sin_of: "fn sin_of(x: vec4<f32>) -> vec4<f32> { return turned(x, 0); }",
  cos_of: "fn cos_of(x: vec4<f32>) -> vec4<f32> { return turned(x, 1); }",
  // x - turn · π/2, with π/2 = 1.5703125 + …. The first two parts of π/2 have 11 bits, so that their products with a
  // quotient below 2^13 are exact.
  turned: wgsl`
    fn turned(x: vec4<f32>, turn: i32) -> vec4<f32> {
      let large = !(abs(x) < vec4<f32>(8192.0));
      let n = round(x * 0.6366197723675814);
      let coarse = settled(fma(n, vec4<f32>(-1.5703125), x));
      var r = fma(n, vec4<f32>(-7.549790126404332e-8), settled(fma(n, vec4<f32>(-0.0004837512969970703), coarse)));
      var quarter = bitcast<vec4<i32>>(n + 12582912.0);
      if (any(large)) {
        for (var i = 0; i < 4; i++) {
          if (large[i]) {
            let reduced = reduce_large(x[i]);
            r[i] = bitcast<f32>(reduced.x);
            quarter[i] = i32(reduced.y);
          }
        }
      }
      return quarter_wave(r, quarter + vec4<i32>(turn));
    }
  `,
  // Sine of r + n π/2, for |r| ≤ π/4.
  quarter_wave: wgsl`
    fn quarter_wave(r: vec4<f32>, n: vec4<i32>) -> vec4<f32> {
      let z = r * r;
      var sine = fma(vec4<f32>(-0.0001951272492228356), z, vec4<f32>(0.008332142411705646));
      sine = fma(sine, z, vec4<f32>(-0.1666665431663616));
      sine = fma(sine * z, r, r);
      var cosine = fma(vec4<f32>(2.4432220225713793e-5), z, vec4<f32>(-0.0013887310531180727));
      cosine = fma(cosine, z, vec4<f32>(0.04166664561985709));
      cosine = fma(cosine, z, vec4<f32>(-0.5));
      cosine = fma(cosine, z, vec4<f32>(1.0));
      let wave = select(sine, cosine, (n & vec4<i32>(1)) != vec4<i32>());
      return select(wave, -wave, (n & vec4<i32>(2)) != vec4<i32>());
    }
  `,
  // Returns the bits of r, and n, with x = r + n π/2. Let x = m·2^s with a 24-bit m. Then x·2/π mod 4 depends only on
  // the 96 bits of 2/π after the bits whose product with m·2^s is a multiple of 4. Source: Payne and Hanek, SIGNUM
  // Newsletter 18 (1983).
  reduce_large: wgsl`
    fn reduce_large(x: f32) -> vec2<u32> {
      let bits = bitcast<u32>(x);
      let exponent = (bits >> 23u) & 0xffu;
      if (exponent == 0xffu) { return vec2<u32>(0x7fc00000u, 0u); }
      // 2/π, its binary point behind the first word.
      var words = array<u32, 8>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
      let at = exponent - 120u; // s + 30, 2^13 has s = -10
      let word = at >> 5u;
      let by = at & 31u;
      let m = (bits & 0x7fffffu) | 0x800000u;
      var pieces: array<u32, 3>;
      for (var i = 0u; i < 3u; i++) {
        pieces[i] = select((words[word + i] << by) | (words[word + i + 1u] >> (32u - max(by, 1u))), words[word + i], by == 0u);
      }
      let low = m * pieces[1];
      let carried = low + multiply_high(m, pieces[2]);
      let high = m * pieces[0] + multiply_high(m, pieces[1]) + select(0u, 1u, carried < low);
      let n = (high + 0x20000000u) >> 30u;
      let rest = (f32(bitcast<i32>(high - (n << 30u))) + f32(carried) * 0x1p-32) * 1.4629180792671596e-9; // π/2 · 2^-30
      let below = (bits >> 31u) != 0u;
      return vec2<u32>(bitcast<u32>(select(rest, -rest, below)), select(n, 0u - n, below) & 3u);
    }
  `,
  // The upper word of a 64-bit product, computed from 16-bit halves.
  multiply_high: wgsl`
    fn multiply_high(a: u32, b: u32) -> u32 {
      let low = (a & 0xffffu) * (b & 0xffffu);
      let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
      let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
      return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u);
    }
  `,
};
