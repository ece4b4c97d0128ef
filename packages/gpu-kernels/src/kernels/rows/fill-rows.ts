import type { Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Returns the pass that fills several outputs, one word per row, for input rows without entries. Each output is filled
 * with its own constant.
 */
export const fillRows = (
  label: string,
  rows: number,
  values: readonly { readonly output: number; readonly bits: number }[],
): Pass => ({
  label: `${label} of empty rows`,
  bindings: values.map(({ output }, i) => ({ name: `y${i}`, type: "array<u32>", source: { output }, access: "write" })),
  workgroupSize: 64,
  groups: Math.ceil(rows / 64),
  code: wgsl`
    fn main(group: u32, lane: u32) {
      let row = group * 64u + lane;
      if (row >= sizes.rows) { return; }
      ${values.map(({ bits }, i) => `y${i}[row] = ${bits}u;`)}
    }
  `,
  sizes: { rows },
});

/** Bits of a quiet NaN. */
export const nanBits = 0x7fc0_0000;
export const negativeInfinityBits = 0xff80_0000;
