// List of the elements outside the window. In a normal distribution, 1.6 of 64 elements are outside. A loop over the
// set bits of each mask ends with a mispredicted branch nearly every time, which takes longer than all other work.
// Therefore the bits of many masks are first written to one list, with three slots per mask always written, and then
// one long loop processes the list.

/** Number of elements per list. */
export const tileSize: usize = 2048;
/** Bytes of a list: a u16 per element, and the excess slots. */
export const listBytes: usize = 2 * tileSize + 16;

/** Appends the indices of the set bits, counted from `base`, to the list. Returns the new end of the list. */
// @ts-ignore: decorator
@inline
export function listBits(bits: u64, base: usize, end: usize): usize {
  const next = end + (<usize>popcnt(bits) << 1);
  for (let slot: usize = 0; slot < 6; slot += 2) {
    store<u16>(end + slot, <u16>(base + <usize>ctz(bits)));
    bits &= bits - 1;
  }
  for (end += 6; bits; end += 2) {
    store<u16>(end, <u16>(base + <usize>ctz(bits)));
    bits &= bits - 1;
  }
  return next;
}
