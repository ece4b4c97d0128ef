// Both AssemblyScript and TypeScript, like blocks.ts: attention divides its work into tiles of this size, and the host
// computes the scratch memory from it.

/** Queries and keys per tile. The square of scores (16 KiB) stays in L1 while it is used. */
export const ATTENTION_TILE = 64;
