// Block size of the triangular kernels; both AssemblyScript and TypeScript, see `blocks.ts`.

/** Rows of a diagonal block: whole tiles of 6 and panels of 8, and its transpose (9 KiB) stays in L1 beside a row. */
export const TRIANGLE_BLOCK = 48;

/** Reflections that are applied together, as two matrix products: four panels of 8. */
export const REFLECTOR_BLOCK = 32;
/** Entries of each eigenvector that plane rotations pass over at a time: four vectors, 512 rows of which are 32 KiB. */
export const ROTATION_LANES = 16;
/** Plane rotations that are collected before they are applied: 64 KiB, which stream from L2 past each panel. */
export const ROTATION_LIST = 8192;
