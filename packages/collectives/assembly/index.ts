import { countBytes, sampleSize } from "./exponent-window";
import { listBytes } from "./outside-list";

export { foldMessage, foldScratchBytes } from "./crc32c";
export { decodeBf16, decodeF32 } from "./decode";
export { encodeBf16, encodeF32, windowBf16, windowF32 } from "./encode";

/**
 * Bytes that the codec needs beside source and target: for the sample's counts, then for the list of elements outside
 * the window.
 */
export function codecScratchBytes(): usize {
  return max(countBytes, listBytes);
}

/** How many elements are looked at to choose the window of `count`. */
export function sampleOf(count: usize): usize {
  return min(count, sampleSize);
}
