// Sizes of `topK`. This file is both AssemblyScript and TypeScript: the kernel lays out its scratch memory by it, and
// the host counts its bytes.

/** Bins of a histogram: 11 bits of a key at a time. */
export const BINS = 2048;
/** Rows with k up to this keep a sorted list instead. */
export const LIST = 32;
/** Rows from this length on are thinned out first, where k is a small part of them. */
export const LONG = 16384;
export const SMALL_PART = 8;
/**
 * The bound is meant to let k times this pass, and no fewer than the other: so many that a sample hardly ever says too
 * few.
 */
export const AIM_TIMES = 2;
export const LEAST_AIM = 2048;
/** Candidates that a thinned row may leave, times the aim. */
export const ROOM_TIMES = 2;
