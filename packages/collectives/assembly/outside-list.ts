// Which elements lie outside the window, as a list. A normal distribution has 1.6 of them among 64; a loop over the set
// bits of each mask is left by a branch that is guessed wrong nearly every time, which takes longer than all else. So
// the bits of many masks first go into one list, three slots per mask written in any case, and one long loop works that
// off.

/** Elements per list. */
export const tileSize: usize = 2048;
/** Bytes of a list: an u16 per element, and the slots that are written in excess. */
export const listBytes: usize = 2 * tileSize + 16;

/** Append the numbers of the bits that are set, counted from `base`. Returns the new end of the list. */
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
