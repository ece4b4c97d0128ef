// Block size of the triangular kernels; both AssemblyScript and TypeScript, see `blocks.ts`.

/** Rows of a diagonal block: whole tiles of 6 and panels of 8, and its transpose (9 KiB) stays in L1 beside a row. */
export const TRIANGLE_BLOCK = 48;
