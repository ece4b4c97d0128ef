// This file is both AssemblyScript and TypeScript, like blocks.ts: attention splits its work into tiles of this size,
// and the host computes the scratch memory from the size.

/**
 * Attention: number of queries, and number of keys, per tile. The scores of a tile (16 KiB) stay in the L1 cache while
 * they are used.
 */
export const ATTENTION_TILE = 64;
