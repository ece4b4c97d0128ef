// Sizes of `topK`. This file is both AssemblyScript and TypeScript: the kernel lays out its scratch memory from these
// sizes, and the host computes the number of bytes.

/** Number of histogram bins, for 11 bits of a key. */
export const BINS = 2048;
/** Maximum k for which rows use a sorted list instead of radix selection. */
export const LIST = 32;
/**
 * Minimum row length at which a row is filtered before the selection, so that only entries above an estimated bound are
 * kept. A row is only filtered if k is also at most n / SMALL_PART.
 */
export const LONG = 16384;
export const SMALL_PART = 8;
/**
 * Target for the number of entries that pass the filter: AIM_TIMES · k, at least LEAST_AIM. The target is large enough
 * that a bound estimated from a sample hardly ever selects fewer than k entries.
 */
export const AIM_TIMES = 2;
export const LEAST_AIM = 2048;
/** Maximum number of entries that may pass the filter (candidates), as a multiple of the target. */
export const ROOM_TIMES = 2;
