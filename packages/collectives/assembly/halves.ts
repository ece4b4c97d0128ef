// The same code works for bf16 and f32, because the upper 16 bits of both types are the sign, 8 exponent bits and 7
// mantissa bits. An f32 has 16 more mantissa bits, which are stored uncoded.

/** Returns the upper 16 bits of elements i to i + 7 of an array at `from`. */
// @ts-ignore: decorator
@inline
export function upperHalves(from: usize, i: usize, wide: bool): v128 {
  if (!wide) return v128.load(from + (i << 1), 0, 1);
  const a = v128.load(from + (i << 2), 0, 1);
  const b = v128.load(from + (i << 2), 16, 1);
  return v128.shuffle<u16>(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}

/** Returns the lower 16 bits of elements i to i + 7 of an f32 array. */
// @ts-ignore: decorator
@inline
export function lowerHalves(from: usize, i: usize): v128 {
  const a = v128.load(from + (i << 2), 0, 1);
  const b = v128.load(from + (i << 2), 16, 1);
  return v128.shuffle<u16>(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
}

/** Returns the upper 16 bits of element i. */
// @ts-ignore: decorator
@inline
export function upperHalf(from: usize, i: usize, wide: bool): u32 {
  return wide ? load<u16>(from + (i << 2), 2) : load<u16>(from + (i << 1));
}

/** Sets the upper 16 bits of element i. */
// @ts-ignore: decorator
@inline
export function setUpperHalf(to: usize, i: usize, half: u32, wide: bool): void {
  if (wide) store<u16>(to + (i << 2), half as u16, 2);
  else store<u16>(to + (i << 1), half as u16);
}

/** Returns the sign and mantissa of an element as one byte, given the upper 16 bits of the element. */
// @ts-ignore: decorator
@inline
export function signAndMantissa(half: u32): u32 {
  return ((half >> 8) & 0x80) | (half & 0x7f);
}

/** Returns the exponent of an element, given the upper 16 bits of the element. */
// @ts-ignore: decorator
@inline
export function exponentOf(half: u32): u32 {
  return (half >> 7) & 0xff;
}

/** Builds the upper 16 bits of an element from its exponent, sign and mantissa. */
// @ts-ignore: decorator
@inline
export function joinHalf(signMantissa: u32, exponent: u32): u32 {
  return ((signMantissa & 0x80) << 8) | (exponent << 7) | (signMantissa & 0x7f);
}

/**
 * Number of elements per block of codes. The codes of a block fill three vectors. Byte l of the three vectors contains
 * the codes of elements l, 16 + l, …, 112 + l, three bits each.
 */
export const blockSize: usize = 128;
export const blockCodeBytes: usize = 48;
