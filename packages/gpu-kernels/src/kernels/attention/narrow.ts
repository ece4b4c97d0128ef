import type { BindingSource, Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;

/**
 * Converts an f32 block to f16 words: the last pass for results whose rows do not start at word boundaries. Cost: 6
 * bytes per value.
 */
export const narrowPass = (from: BindingSource, to: BindingSource, count: number): Pass => ({
  label: "attention to f16",
  bindings: [
    { name: "x", type: "array<vec2<f32>>", source: from, access: "read" },
    { name: "y", type: "array<u32>", source: to, access: "write" },
  ],
  workgroupSize,
  groups: Math.ceil(Math.ceil(count / 2) / workgroupSize),
  code: wgsl`
    fn main(group: u32, lane: u32) {
      let at = group * ${workgroupSize}u + lane;
      if (at < sizes.pairs) { y[at] = pack2x16float(x[at]); }
    }
  `,
  sizes: { pairs: Math.ceil(count / 2) },
});
