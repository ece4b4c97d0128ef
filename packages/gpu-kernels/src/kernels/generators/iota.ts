import { type DType, elementCount, type Shape } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 128;

/** Computes `y[…, i, …] = i` along `dim`: element k holds `⌊k / inner⌋ mod size`. Four elements per invocation. */
export const iotaPass = (dtype: DType, shape: Shape, dim: number): Pass => {
  const vectors = Math.ceil(elementCount(shape) / 4);
  const inner = elementCount(shape.slice(dim + 1));
  const whole = inner === 1 ? "flat" : `flat / ${inner}u`;
  // The count only restarts if there are dimensions before `dim` with more than one element.
  const index = elementCount(shape.slice(0, dim)) === 1 ? whole : `(${whole}) % ${shape[dim]!}u`;
  return {
    label: "iota",
    bindings: [{ name: "y", type: `array<vec4<${dtype}>>`, source: { output: 0 }, access: "write" }],
    workgroupSize,
    groups: Math.ceil(vectors / workgroupSize),
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let at = group * ${workgroupSize}u + lane;
        if (at >= sizes.vectors) { return; }
        let flat = vec4<u32>(4u * at) + vec4<u32>(0u, 1u, 2u, 3u);
        y[at] = vec4<${dtype}>(${index});
      }
    `,
    sizes: { vectors },
  };
};
