import { countBytes, sampleSize } from "./exponent-window";
import { listBytes } from "./outside-list";

export { foldMessage, foldScratchBytes } from "./crc32c";
export { decodeBf16, decodeF32 } from "./decode";
export { encodeBf16, encodeF32, windowBf16, windowF32 } from "./encode";

/**
 * Returns the bytes of scratch memory that the codec needs in addition to source and target: the counts of the sample,
 * and the list of elements outside of the window.
 */
export function codecScratchBytes(): usize {
  return max(countBytes, listBytes);
}

/** Returns the number of elements that are sampled to choose the window for `count` elements. */
export function sampleOf(count: usize): usize {
  return min(count, sampleSize);
}
