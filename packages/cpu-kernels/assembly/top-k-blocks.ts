// Sizes of `topK`. This file is both AssemblyScript and TypeScript: the kernel lays out its scratch memory from these
// sizes, and the host computes the number of bytes.

/** Bins of a histogram: 11 bits of a key at a time. */
export const BINS = 2048;
/** Maximum k for which rows use a sorted list instead. */
export const LIST = 32;
/** Rows of at least LONG elements are filtered first, if k is at most n / SMALL_PART. */
export const LONG = 16384;
export const SMALL_PART = 8;
/**
 * Target number of entries that reach the bound: AIM_TIMES · k, and at least LEAST_AIM. Large enough that an estimate
 * from a sample hardly ever gives too few entries.
 */
export const AIM_TIMES = 2;
export const LEAST_AIM = 2048;
/** Capacity for the candidates of a filtered row, as a multiple of the target. */
export const ROOM_TIMES = 2;
