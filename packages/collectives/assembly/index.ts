import { countBytes, sampleSize } from "./exponent-window";
import { listBytes } from "./outside-list";

export { foldMessage, foldScratchBytes } from "./crc32c";
export { decodeBf16, decodeF32 } from "./decode";
export { encodeBf16, encodeF32, windowBf16, windowF32 } from "./encode";

/**
 * Returns the size of the codec's scratch memory, in bytes. The codec uses the scratch memory first for the histogram
 * of sampled exponents, then for the list of elements outside the exponent window.
 */
export function codecScratchBytes(): usize {
  return max(countBytes, listBytes);
}

/** Returns the number of elements sampled to choose the exponent window of an array of `count` elements. */
export function sampleOf(count: usize): usize {
  return min(count, sampleSize);
}
