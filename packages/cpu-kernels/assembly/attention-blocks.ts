// Both AssemblyScript and TypeScript, like blocks.ts: attention cuts its work by it, and the host computes its scratch
// memory from it.

/** Queries and keys that meet at a time: their square of scores (16 KiB) stays in L1 while it is used. */
export const ATTENTION_TILE = 64;
