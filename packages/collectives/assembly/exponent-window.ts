import { exponentOf, upperHalf } from "./halves";

/** Number of elements that are sampled to choose the window. */
export const sampleSize: usize = 512;
/** Bytes of scratch memory for the counts: one u32 per exponent. */
export const countBytes: usize = 1024;

/**
 * Returns the window: the seven adjacent exponents that cover the most elements of a sample. The low 8 bits of the
 * result are the first exponent, the upper bits are the number of sampled elements outside of the window. The sample
 * has one element from each of 512 equal segments of the array, at a position that changes from segment to segment, so
 * that the sample of a matrix does not consist of a single column.
 */
// @ts-ignore: decorator
@inline
export function chooseWindow(from: usize, count: usize, wide: bool, counts: usize): u32 {
  memory.fill(counts, 0, countBytes);
  const samples = min(count, sampleSize);
  const part = <u64>count * 65536 / samples; // Length of a segment in fixed point with 16 fractional bits.
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
