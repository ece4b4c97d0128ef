// Sizes of `fused`. This file is both AssemblyScript and TypeScript.

/** Lanes of a tile: with the few live registers of a usual program, tiles fill half of a 32 KiB cache. */
export const TILE = 1024;
