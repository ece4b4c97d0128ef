// Block size of the triangular kernels. This file is both AssemblyScript and TypeScript; see `blocks.ts`.

/**
 * Number of rows per diagonal block, a multiple of the tile height (6) and the panel width (8). The transposed block (9
 * KiB) stays in L1 together with a row.
 */
export const TRIANGLE_BLOCK = 48;

/**
 * Number of Householder reflections per block. A block is applied as two matrix products, with four panels of 8
 * columns.
 */
export const REFLECTOR_BLOCK = 32;
/**
 * Number of entries of each eigenvector that are rotated at a time: four SIMD vectors. 512 rows of this length take 32
 * KiB.
 */
export const ROTATION_LANES = 16;
/**
 * Maximum number of plane rotations that are collected before they are applied. The list takes 64 KiB and is streamed
 * from L2 for each panel.
 */
export const ROTATION_LIST = 8192;
