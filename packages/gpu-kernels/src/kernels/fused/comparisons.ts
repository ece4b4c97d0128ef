import { wgsl } from "../../wgsl.ts";

// Functions that depend on NaN or on the sign work on bits or use ordered comparisons, because WGSL does not define
// max, min, sign and != of a NaN.

/** WGSL of the comparison functions on vectors of four, by function name. */
export const comparisonFunctions: { readonly [name: string]: string } = {
  is_nan:
    "fn is_nan(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u); }",
  is_finite:
    "fn is_finite(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7f800000u)) != vec4<u32>(0x7f800000u); }",
  maximum: "fn maximum(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return select(b, a, (a > b) | is_nan(a)); }",
  minimum: "fn minimum(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return select(b, a, (a < b) | is_nan(a)); }",
  sign_of: wgsl`
    fn sign_of(x: vec4<f32>) -> vec4<f32> {
      return select(select(x, vec4<f32>(-1.0), x < vec4<f32>()), vec4<f32>(1.0), x > vec4<f32>());
    }
  `,
};
