import { elementCount, type Shape } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import { loadFunction } from "../../storage.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;

/**
 * WGSL that packs four bytes with value 0 or 1 into four bits, the lowest byte first. The multiplication moves the bits
 * next to each other at the top of the word.
 */
const nibble = "fn nibble(w: u32) -> u32 { return (w * 0x10204080u) >> 28u; }";

/**
 * Packs bools into bits. Word w of a row holds elements 32w … 32w+31 of the row, the first in the lowest bit; missing
 * elements give 0. One word per invocation.
 *
 * Bytes: n read, n/8 written.
 */
export const packBitsPass = (shape: Shape): Pass => {
  const count = shape.at(-1)!;
  const words = Math.ceil(count / 32);
  const total = elementCount(shape.slice(0, -1)) * words;
  const variant = count % 32 === 0 ? "whole words" : count % 4 === 0 ? "whole nibbles" : "bits";
  const wide = variant === "whole words";
  const bodies = {
    "whole words": wgsl`
      let low = x[2u * at];
      let high = x[2u * at + 1u];
      y[at] = nibble(low.x) | (nibble(low.y) << 4u) | (nibble(low.z) << 8u) | (nibble(low.w) << 12u)
        | (nibble(high.x) << 16u) | (nibble(high.y) << 20u) | (nibble(high.z) << 24u) | (nibble(high.w) << 28u);
    `,
    "whole nibbles": wgsl`
      let row = at / ${words}u;
      let word = at - row * ${words}u;
      let begin = row * ${count / 4}u + word * 8u;
      let size = min(8u, ${count / 4}u - word * 8u);
      var bits = 0u;
      for (var i = 0u; i < size; i++) { bits |= nibble(x[begin + i]) << (4u * i); }
      y[at] = bits;
    `,
    bits: wgsl`
      let row = at / ${words}u;
      let word = at - row * ${words}u;
      let begin = row * ${count}u + word * 32u;
      let size = min(32u, ${count}u - word * 32u);
      var bits = 0u;
      for (var i = 0u; i < size; i++) { bits |= select(0u, 1u << i, load_x(begin + i)); }
      y[at] = bits;
    `,
  } as const;
  return {
    label: `pack-bits ${variant}`,
    bindings: [
      { name: "x", type: wide ? "array<vec4<u32>>" : "array<u32>", source: { input: 0 }, access: "read" },
      { name: "y", type: "array<u32>", source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil(total / workgroupSize),
    code: wgsl`
      ${variant === "bits" ? loadFunction("x", "bool") : nibble}
      fn main(group: u32, lane: u32) {
        let at = group * ${workgroupSize}u + lane;
        if (at >= sizes.total) { return; }
        ${bodies[variant]}
      }
    `,
    sizes: { total },
  };
};
