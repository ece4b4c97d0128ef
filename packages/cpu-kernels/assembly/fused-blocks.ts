// Tile size of `fused`. This file is both AssemblyScript and TypeScript.

/** Number of 32-bit lanes per tile (4 KiB). The few live registers of a typical program fill half of a 32 KiB cache. */
export const TILE = 1024;
