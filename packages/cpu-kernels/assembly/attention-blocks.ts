// This file is both AssemblyScript and TypeScript, like blocks.ts: attention splits its work into tiles of this size,
// and the host computes the scratch memory from the size.

/** Number of queries and of keys per tile. The square of scores (16 KiB) stays in the L1 cache while it is used. */
export const ATTENTION_TILE = 64;
