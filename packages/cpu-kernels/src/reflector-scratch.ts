import { REFLECTOR_BLOCK } from "../assembly/decomposition-blocks.ts";
import { productScratchBytes } from "./contraction-scratch.ts";

/**
 * Returns the scratch bytes of `reflectRows` for `rows` rows of `length` entries: the triangle T, two matrices with
 * `rows` × REFLECTOR_BLOCK floats, and the scratch of a matrix product.
 */
export const reflectorScratchBytes = (rows: number, length: number): number => {
  const longest = Math.max(rows, length, REFLECTOR_BLOCK);
  return 4 * REFLECTOR_BLOCK * (REFLECTOR_BLOCK + 2 * rows) + productScratchBytes(longest, longest, longest);
};
