import { elementCount, type Shape } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 128;

/**
 * WGSL that unpacks four bits into four bytes with value 0 or 1, the lowest bit first. The multiplication shifts copies
 * of the nibble so that each byte receives its bit.
 */
const spread = "fn spread(nibble: u32) -> u32 { return ((nibble & 15u) * 0x00204081u) & 0x01010101u; }";

/**
 * Unpacks bits into bools. In each row, element i is bit `i mod 32` of word `⌊i/32⌋`. An invocation writes four
 * elements, or sixteen if rows consist of complete vectors.
 *
 * Bytes: n/8 read, n written.
 */
export const unpackBitsPass = (shape: Shape): Pass => {
  const count = shape.at(-1)!;
  const words = Math.ceil(count / 32);
  const variant = count % 16 === 0 ? "half words" : count % 4 === 0 ? "whole nibbles" : "bits";
  const elements = elementCount(shape);
  const total = Math.ceil(elements / (variant === "half words" ? 16 : 4));
  const bodies = {
    "half words": wgsl`
      let row = at / ${count / 16}u;
      let half = at - row * ${count / 16}u;
      let bits = x[row * ${words}u + (half >> 1u)] >> (16u * (half & 1u));
      y[at] = vec4<u32>(spread(bits), spread(bits >> 4u), spread(bits >> 8u), spread(bits >> 12u));
    `,
    "whole nibbles": wgsl`
      let row = at / ${count / 4}u;
      let nibble = at - row * ${count / 4}u;
      y[at] = spread(x[row * ${words}u + (nibble >> 3u)] >> (4u * (nibble & 7u)));
    `,
    bits: wgsl`
      var bytes = 0u;
      for (var i = 0u; i < 4u; i++) {
        let row = (4u * at + i) / ${count}u;
        let column = 4u * at + i - row * ${count}u;
        bytes |= ((x[row * ${words}u + (column >> 5u)] >> (column & 31u)) & 1u) << (8u * i);
      }
      y[at] = bytes;
    `,
  } as const;
  return {
    label: `unpack-bits ${variant}`,
    bindings: [
      { name: "x", type: "array<u32>", source: { input: 0 }, access: "read" },
      {
        name: "y",
        type: variant === "half words" ? "array<vec4<u32>>" : "array<u32>",
        source: { output: 0 },
        access: "write",
      },
    ],
    workgroupSize,
    groups: Math.ceil(total / workgroupSize),
    code: wgsl`
      ${spread}
      fn main(group: u32, lane: u32) {
        let at = group * ${workgroupSize}u + lane;
        if (at >= sizes.total) { return; }
        ${bodies[variant]}
      }
    `,
    sizes: { total },
  };
};
