// List of the elements outside the window. Of 64 normally distributed elements, 1.6 are outside on average. A loop over
// the set bits of each mask would end with a mispredicted branch nearly every time, which takes longer than all other
// work. Therefore the set bits of many masks are first written to one list, always three slots per mask, and one long
// loop then processes the list.

/** Number of array elements processed per list of out-of-window elements, and so the maximum length of the list. */
export const tileSize: usize = 2048;
/**
 * Size of the list of out-of-window elements, in bytes: one u16 per element, plus space for unused slots written after
 * the last element.
 */
export const listBytes: usize = 2 * tileSize + 16;

/**
 * Appends the index of each set bit of a mask, plus `base`, to the list of out-of-window elements. Returns the new end
 * address of the list.
 */
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
