import type { DeviceFacts } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

// Factorizations process blocks of 64 rows in the right-looking order: factor or solve a block, then subtract its
// products from the remaining matrix. A block's position is a uniform instead of shader text, so all blocks of all
// matrices share their pipelines.

/** Number of rows of a block. The lower triangle of a block takes 8.1 KiB of workgroup memory. */
export const blockRows = 64;

/** Number of entries of a packed lower triangle. Row i begins at i(i + 1)/2. */
export const triangleEntries: number = (blockRows * (blockRows + 1)) / 2;

/** Returns the first row of each of the blocks that cover `rows` rows. */
export const blockStarts = (rows: number): number[] =>
  Array.from({ length: Math.ceil(rows / blockRows) }, (_, block) => block * blockRows);

/**
 * WGSL of `fn pivot_of(d: f32) -> f32`, which returns the square root of a positive number, and NaN for all other
 * values. Works on bits, because compilers may remove comparisons with NaN.
 */
export const pivotFunction: string = wgsl`
  var<private> never: u32 = 0u;
  fn pivot_of(d: f32) -> f32 {
    return select(bitcast<f32>(0x7fc00000u | never), sqrt(d), bitcast<u32>(d) - 1u < 0x7f800000u);
  }
`;

/**
 * Returns the number of lanes per workgroup of a substitution. In workgroup memory, each lane has a column of 64
 * values, in addition to the triangle that all lanes share.
 */
export const substitutionLanes = ({ maxWorkgroupBytes }: Pick<DeviceFacts, "maxWorkgroupBytes">): number =>
  4 * (triangleEntries + blockRows * 65) <= maxWorkgroupBytes ? 64 : 16;
