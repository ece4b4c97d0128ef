import { elementCount, type TensorSpec } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import { packVector, vectorBinding, vectorFunctions } from "../fused/vectors.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 128;

const values = { f32: "vec4<f32>", i32: "vec4<i32>", u32: "vec4<u32>", u8: "vec4<u32>" } as const;

/**
 * Computes `y[row, column] = 1 if x[row] = column else 0`, four adjacent elements per invocation. Needs only one
 * division if rows consist of complete vectors.
 */
export const oneHotPass = ({ dtype, shape }: TensorSpec): Pass => {
  const depth = shape.at(-1)!;
  const vectors = Math.ceil(elementCount(shape) / 4);
  const type = dtype as keyof typeof values | "bool";
  const hits =
    depth % 4 === 0
      ? wgsl`
        let row = at / ${depth / 4}u;
        let hit = vec4<i32>(x[row]) == (vec4<i32>(i32(4u * at - row * ${depth}u)) + vec4<i32>(0, 1, 2, 3));
      `
      : wgsl`
        let flat = vec4<u32>(4u * at) + vec4<u32>(0u, 1u, 2u, 3u);
        let row = flat / ${depth}u;
        let hit = vec4<i32>(x[row.x], x[row.y], x[row.z], x[row.w]) == vec4<i32>(flat - row * ${depth}u);
      `;
  const value = type === "bool" ? "hit" : `select(${values[type]}(), ${values[type]}(1), hit)`;
  return {
    label: "one-hot",
    bindings: [
      { name: "x", type: "array<i32>", source: { input: 0 }, access: "read" },
      { name: "y", type: vectorBinding(dtype), source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil(vectors / workgroupSize),
    code: wgsl`
      ${vectorFunctions["pack_bytes"]!}
      fn main(group: u32, lane: u32) {
        let at = group * ${workgroupSize}u + lane;
        if (at >= sizes.vectors) { return; }
        ${hits}
        y[at] = ${packVector(value, dtype)};
      }
    `,
    sizes: { vectors },
  };
};
