// Kinds of sort keys. Keys are u32 with the same order as the values. NaN has the largest key, and -0 equals +0.

export const enum Order {
  Float = 0,
  Signed = 1,
  Unsigned = 2,
  Byte = 3,
  Magnitude = 4,
}

/**
 * Returns an integer key of an f32, given by its bits. Keys have the order of the numbers; NaN has the largest key. If
 * all bits of `flip` are set, the order of all keys except NaN is reversed.
 */
// @ts-ignore: decorator
@inline
export function floatKey(bits: u32, flip: u32): u32 {
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0xffffffff;
  const key: u32 = magnitude == 0 || bits == magnitude ? magnitude | 0x80000000 : ~bits;
  return key ^ flip;
}

/**
 * Returns an integer key of an f32, given by its bits. Keys have the order of the magnitudes; NaN has the largest key.
 */
// @ts-ignore: decorator
@inline
export function magnitudeKey(bits: u32): u32 {
  const magnitude = bits & 0x7fffffff;
  return magnitude > 0x7f800000 ? 0xffffffff : magnitude;
}

/**
 * Returns the integer key that orders the element at an address among elements of the same `kind`. If all bits of
 * `flip` are set, the order of all keys except NaN is reversed.
 */
// @ts-ignore: decorator
@inline
export function keyOf(kind: i32, at: usize, flip: u32): u32 {
  if (kind == Order.Float) return floatKey(load<u32>(at), flip);
  if (kind == Order.Signed) return (load<u32>(at) ^ 0x80000000) ^ flip;
  if (kind == Order.Unsigned) return load<u32>(at) ^ flip;
  if (kind == Order.Byte) return (<u32>load<u8>(at)) ^ flip;
  return magnitudeKey(load<u32>(at));
}
