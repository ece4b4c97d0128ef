// Sizes of `fused`. This file is both AssemblyScript and TypeScript.

/** Number of lanes of a tile. With the few live registers of a typical program, tiles fill half of a 32 KiB cache. */
export const TILE = 1024;
