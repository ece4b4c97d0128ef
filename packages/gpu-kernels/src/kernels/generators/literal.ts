import { byteLength, NdArray, type TensorSpec } from "@skein/tensor-core";
import type { KernelPlan } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 128;

/**
 * Returns the plan of a literal: copies `values` to the result from a constant block, which is written when the graph
 * is compiled.
 */
export const literalPlan = (spec: TensorSpec, values: readonly number[]): KernelPlan => {
  const bytes = NdArray.from(values, spec.shape, spec.dtype).bytes();
  const vectors = Math.ceil(byteLength(spec) / 16);
  return {
    constants: [bytes],
    passes: [
      {
        label: "literal",
        bindings: [
          { name: "x", type: "array<vec4<u32>>", source: { constants: 0 }, access: "read" },
          { name: "y", type: "array<vec4<u32>>", source: { output: 0 }, access: "write" },
        ],
        workgroupSize,
        groups: Math.ceil(vectors / workgroupSize),
        code: wgsl`
          fn main(group: u32, lane: u32) {
            let at = group * ${workgroupSize}u + lane;
            if (at < sizes.vectors) { y[at] = x[at]; }
          }
        `,
        sizes: { vectors },
      },
    ],
  };
};
