import { byteLength, NdArray, type TensorSpec } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 128;

/** Fills the result with one value, 16 bytes per invocation. One pipeline serves every dtype, value and size. */
export const fillPass = (spec: TensorSpec, value: number): Pass => {
  const element = NdArray.from([value], [1], spec.dtype).bytes();
  const word = new Uint32Array(Uint8Array.from({ length: 4 }, (_, i) => element[i % element.length]!).buffer)[0]!;
  const vectors = Math.ceil(byteLength(spec) / 16);
  return {
    label: "constant",
    bindings: [{ name: "y", type: "array<vec4<u32>>", source: { output: 0 }, access: "write" }],
    workgroupSize,
    groups: Math.ceil(vectors / workgroupSize),
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let at = group * ${workgroupSize}u + lane;
        if (at < sizes.vectors) { y[at] = vec4<u32>(sizes.word); }
      }
    `,
    sizes: { vectors, word },
  };
};
