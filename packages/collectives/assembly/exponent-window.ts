import { exponentOf, upperHalf } from "./halves";

/** Maximum number of elements that are sampled to choose the exponent window. */
export const sampleSize: usize = 512;
/** Size of the histogram of exponents in bytes: one u32 per exponent. */
export const countBytes: usize = 1024;

/**
 * Returns the window of seven adjacent exponents that covers the most sampled elements. Bits 0 to 7 are the first
 * exponent of the window. The higher bits are the number of sampled elements outside the window. The sample has one
 * element from each of at most 512 equal sections of the array. The position in the section varies, so that the sample
 * does not consist of a single matrix column.
 */
// @ts-ignore: decorator
@inline
export function chooseWindow(from: usize, count: usize, wide: bool, counts: usize): u32 {
  memory.fill(counts, 0, countBytes);
  const samples = min(count, sampleSize);
  const part = <u64>count * 65536 / samples; // Section length in fixed point with 16 fractional bits.
  for (let s: u64 = 0; s < samples; s++) {
    const within = ((<u32>s * 0x9e3779b9) >> 16) as u64;
    const i = <usize>((s * part + ((within * part) >> 16)) >> 16);
    const bin = counts + (exponentOf(upperHalf(from, min(i, count - 1), wide)) << 2);
    store<u32>(bin, load<u32>(bin) + 1);
  }
  let mass: u32 = 0;
  for (let e: usize = 0; e < 7; e++) mass += load<u32>(counts + (e << 2));
  let best = mass;
  let first: u32 = 0;
  for (let e: usize = 1; e <= 249; e++) {
    mass += load<u32>(counts + ((e + 6) << 2)) - load<u32>(counts + ((e - 1) << 2));
    if (mass > best) {
      best = mass;
      first = <u32>e;
    }
  }
  return ((<u32>samples - best) << 8) | first;
}
