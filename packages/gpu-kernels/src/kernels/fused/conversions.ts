import { wgsl } from "../../wgsl.ts";

// Casts on vectors of four. Casts from floats to integers saturate; NaN becomes 0. Rounding to 16 bits works on the
// bits, because WGSL allows its builtins to round up or down, and does not define results of overflow.

/** WGSL of the conversion functions on vectors of four, by function name. */
export const conversionFunctions: { readonly [name: string]: string } = {
  // The WGSL builtins saturate at the last float inside the integer range.
  to_i32: wgsl`
    fn to_i32(x: vec4<f32>) -> vec4<i32> {
      let inside = vec4<i32>(select(x, vec4<f32>(), is_nan(x)));
      return select(inside, vec4<i32>(2147483647), x >= vec4<f32>(2147483648.0));
    }
  `,
  to_u32: wgsl`
    fn to_u32(x: vec4<f32>) -> vec4<u32> {
      let inside = vec4<u32>(select(vec4<f32>(), x, x > vec4<f32>()));
      return select(inside, vec4<u32>(4294967295u), x >= vec4<f32>(4294967296.0));
    }
  `,
  to_u8: wgsl`
    fn to_u8(x: vec4<f32>) -> vec4<u32> {
      let above = select(vec4<f32>(), x, x > vec4<f32>());
      return vec4<u32>(select(above, vec4<f32>(255.0), above > vec4<f32>(255.0)));
    }
  `,
  // Below 2^-14 the spacing of f16 is 2^-24. Values of 65520 and above round to Infinity.
  encode_f16: wgsl`
    fn encode_f16(x: vec4<f32>) -> vec4<u32> {
      let bits = bitcast<vec4<u32>>(x);
      let magnitude = bits & vec4<u32>(0x7fffffffu);
      let even = (magnitude >> vec4<u32>(13u)) & vec4<u32>(1u);
      let normal = ((magnitude + vec4<u32>(0xfffu) + even) >> vec4<u32>(13u)) - vec4<u32>(0x1c000u);
      let small = magnitude < vec4<u32>(0x38800000u);
      let units = vec4<u32>(round(select(vec4<f32>(), bitcast<vec4<f32>>(magnitude) * 16777216.0, small)));
      let large = select(vec4<u32>(0x7c00u), vec4<u32>(0x7e00u), magnitude > vec4<u32>(0x7f800000u));
      return select(select(normal, units, small), large, magnitude >= vec4<u32>(0x477ff000u)) | ((bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u));
    }
  `,
  decode_f16: wgsl`
    fn decode_f16(h: vec4<u32>) -> vec4<f32> {
      return vec4<f32>(unpack2x16float(h.x | (h.y << 16u)), unpack2x16float(h.z | (h.w << 16u)));
    }
  `,
  encode_bf16: wgsl`
    fn encode_bf16(x: vec4<f32>) -> vec4<u32> {
      let bits = bitcast<vec4<u32>>(x);
      let even = (bits >> vec4<u32>(16u)) & vec4<u32>(1u);
      let rounded = (bits + vec4<u32>(0x7fffu) + even) >> vec4<u32>(16u);
      return select(rounded, ((bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u)) | vec4<u32>(0x7fc0u), is_nan(x));
    }
  `,
  decode_bf16: "fn decode_bf16(h: vec4<u32>) -> vec4<f32> { return bitcast<vec4<f32>>(h << vec4<u32>(16u)); }",
  // If the divisor is 0, the quotient is 0.
  divide_i32: wgsl`
    fn divide_i32(a: vec4<i32>, b: vec4<i32>) -> vec4<i32> {
      let none = b == vec4<i32>();
      return select(a / select(b, vec4<i32>(1), none), vec4<i32>(), none);
    }
  `,
  divide_u32: wgsl`
    fn divide_u32(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
      let none = b == vec4<u32>();
      return select(a / select(b, vec4<u32>(1u), none), vec4<u32>(), none);
    }
  `,
};
