import { wgsl } from "../../wgsl.ts";

// WGSL allows an error of 2.5 units in the last place for quotients and 3 for roots. One step of Newton's method with
// an exact remainder gives the correctly rounded result of IEEE 754. Remainders are exact without a fused multiply-add:
// factors are split into halves of 12 bits, whose products are exact. Below 2^-90 such products would leave the normal
// range, so the builtins' results are not changed.

/** WGSL of the rounding functions on vectors of four, by function name. */
export const roundingFunctions: { readonly [name: string]: string } = {
  // x truncated to the first 12 bits of its significand.
  leading:
    "fn leading(x: vec4<f32>) -> vec4<f32> { return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4<u32>(0xfffff000u)); }",
  // a - b c, exact if b c is close to a.
  remainder_of: wgsl`
    fn remainder_of(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>) -> vec4<f32> {
      let b_high = leading(b);
      let c_high = leading(c);
      let b_low = b - b_high;
      let c_low = c - c_high;
      let cross = settled(settled(a - settled(b_high * c_high)) - settled(b_high * c_low));
      return settled(cross - settled(b_low * c_high)) - settled(b_low * c_low);
    }
  `,
  // Adds a correction step to a builtin's result, if the step is a small fraction of the result and the terms of the
  // step were exact.
  moved_by: wgsl`
    fn moved_by(result: vec4<f32>, step: vec4<f32>, operand: vec4<f32>) -> vec4<f32> {
      let sound = (abs(step) < abs(result) * 0x1p-20) & (abs(operand) > vec4<f32>(0x1p-90));
      return select(result, result + step, sound);
    }
  `,
  round_quotient: wgsl`
    fn round_quotient(a: vec4<f32>, b: vec4<f32>, near: vec4<f32>) -> vec4<f32> {
      return moved_by(near, remainder_of(a, near, b) / b, a);
    }
  `,
  round_root: wgsl`
    fn round_root(a: vec4<f32>, near: vec4<f32>) -> vec4<f32> {
      return moved_by(near, remainder_of(a, near, near) / (near + near), a);
    }
  `,
  divide_f32: "fn divide_f32(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return round_quotient(a, b, a / b); }",
  sqrt_of: "fn sqrt_of(a: vec4<f32>) -> vec4<f32> { return round_root(a, sqrt(a)); }",
};
