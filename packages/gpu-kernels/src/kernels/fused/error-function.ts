import { wgsl } from "../../wgsl.ts";

// The error function and GELU on vectors of four, accurate to about two units in the last place. Coefficients as in the
// WebAssembly kernels.

/** WGSL of the error function and GELU, each `(vec4<f32>) -> vec4<f32>`, by function name. */
export const errorFunctions: { readonly [name: string]: string } = {
  // erf x for |x| ≤ 1.
  erf_near: wgsl`
    fn erf_near(a: vec4<f32>) -> vec4<f32> {
      let z = a * a;
      var near = fma(vec4<f32>(7.882497109669944e-5), z, vec4<f32>(-0.0008018854992645193));
      near = fma(near, z, vec4<f32>(0.005189311942668474));
      near = fma(near, z, vec4<f32>(-0.026854328796056415));
      near = fma(near, z, vec4<f32>(0.1128359746348775));
      near = fma(near, z, vec4<f32>(-0.376126269035804));
      near = fma(near, z, vec4<f32>(0.12837916588150267));
      return fma(near, a, a);
    }
  `,
  // 1 - erf x for x ≥ 1, as the exponential of a polynomial; 0 above 4.
  erfc_far: wgsl`
    fn erfc_far(a: vec4<f32>) -> vec4<f32> {
      let beyond = a > vec4<f32>(4.0);
      let t = select(a, vec4<f32>(4.0), beyond);
      var far = fma(vec4<f32>(1.6140616101718177e-6), t, vec4<f32>(-4.559062259197016e-5));
      far = fma(far, t, vec4<f32>(0.0005927695391132622));
      far = fma(far, t, vec4<f32>(-0.004740222347929312));
      far = fma(far, t, vec4<f32>(0.02636471738164925));
      far = fma(far, t, vec4<f32>(-0.10997824516211654));
      far = fma(far, t, vec4<f32>(-0.6319370936295596));
      far = fma(far, t, vec4<f32>(-1.130166675532402));
      far = fma(far, t, vec4<f32>(0.0003032129761256501));
      return select(exp_moderate(far), vec4<f32>(), beyond);
    }
  `,
  erf_of: wgsl`
    fn erf_of(a: vec4<f32>) -> vec4<f32> {
      let x = abs(a);
      let far = 1.0 - erfc_far(x);
      return select(erf_near(a), select(far, -far, a < vec4<f32>()), x > vec4<f32>(1.0));
    }
  `,
  // x/2 · (1 + erf(x/√2)). Negative x use 1 - erf, which does not cancel.
  gelu_of: wgsl`
    fn gelu_of(a: vec4<f32>) -> vec4<f32> {
      let z = a * 0.7071067811865476;
      let x = abs(z);
      let rest = erfc_far(x);
      let far = select(2.0 - rest, rest, a < vec4<f32>());
      return (0.5 * a) * select(1.0 + erf_near(z), far, x > vec4<f32>(1.0));
    }
  `,
  // x/2 · (1 + tanh u) with u = √(2/π) (x + 0.044715 x³), computed as x · sigmoid(2u), which does not cancel.
  gelu_tanh_of: wgsl`
    fn gelu_tanh_of(a: vec4<f32>) -> vec4<f32> {
      return a * sigmoid_of((1.5957691216057308 * a) * fma(vec4<f32>(0.044715), a * a, vec4<f32>(1.0)));
    }
  `,
};
