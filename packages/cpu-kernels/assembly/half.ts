// 16-bit floats in 32-bit lanes. Inside a kernel, rounded values stay f32, so storing their 16 bits is exact.
import { absF, addF, addI, andB, leF, leI, ltF, mulF, neF, orB, select, shlI, shrU, splat, splatBits, subF, subI, truncI, xorB } from "./vectors";

/** Rounds to the nearest f16 (ties to even, subnormals are kept), as f32. */
// @ts-ignore: decorator
@inline
export function roundToF16<T>(x: T): T {
  const magnitude = absF<T>(x);
  const even = andB<T>(shrU<T>(magnitude, 13), splatBits<T>(1));
  const normal = andB<T>(addI<T>(addI<T>(magnitude, splatBits<T>(0xfff)), even), splatBits<T>(0xffffe000));
  // Below 2^-14 the spacing of f16 is 2^-24, which is the spacing of f32 at 0.5.
  const subnormal = subF<T>(addF<T>(magnitude, splat<T>(0.5)), splat<T>(0.5));
  let rounded = select<T>(ltF<T>(magnitude, splat<T>(6.103515625e-5)), subnormal, normal);
  rounded = select<T>(leF<T>(splat<T>(65520.0), magnitude), splat<T>(Infinity), rounded);
  rounded = select<T>(neF<T>(x, x), splat<T>(NaN), rounded);
  return orB<T>(rounded, xorB<T>(x, magnitude));
}

/** Rounds to the nearest bfloat16 (ties to even), as f32. */
// @ts-ignore: decorator
@inline
export function roundToBf16<T>(x: T): T {
  const even = andB<T>(shrU<T>(x, 16), splatBits<T>(1));
  const rounded = andB<T>(addI<T>(addI<T>(x, splatBits<T>(0x7fff)), even), splatBits<T>(0xffff0000));
  return select<T>(neF<T>(x, x), orB<T>(andB<T>(x, splatBits<T>(0x80000000)), splatBits<T>(0x7fc00000)), rounded);
}

/** Returns the f32 value of the f16 in the low 16 bits of each lane. */
// @ts-ignore: decorator
@inline
export function decodeF16<T>(h: T): T {
  const magnitude = andB<T>(h, splatBits<T>(0x7fff));
  const moved = shlI<T>(magnitude, 13);
  const finite = mulF<T>(moved, splatBits<T>(0x77800000)); // times 2^112: rebases the exponent, also of subnormals
  const value = select<T>(leI<T>(splatBits<T>(0x7c00), magnitude), orB<T>(moved, splatBits<T>(0x7f800000)), finite);
  return orB<T>(value, shlI<T>(andB<T>(h, splatBits<T>(0x8000)), 16));
}

/** Returns the 16 bits, low in each lane, of an f32 that is exactly representable as f16. */
// @ts-ignore: decorator
@inline
export function encodeF16<T>(x: T): T {
  const magnitude = absF<T>(x);
  const normal = shrU<T>(subI<T>(magnitude, splatBits<T>(0x38000000)), 13);
  const subnormal = truncI<T>(mulF<T>(magnitude, splat<T>(16777216.0)));
  let bits = select<T>(ltF<T>(magnitude, splat<T>(6.103515625e-5)), subnormal, normal);
  bits = select<T>(leF<T>(splat<T>(Infinity), magnitude), splatBits<T>(0x7c00), bits);
  bits = select<T>(neF<T>(x, x), splatBits<T>(0x7e00), bits);
  return orB<T>(bits, shrU<T>(xorB<T>(x, magnitude), 16));
}
