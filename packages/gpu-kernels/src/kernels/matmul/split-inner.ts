import type { KernelPlan, Pass } from "../../kernel.ts";
import { featuresOf, type Product } from "./product.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Splits of the inner dimension: `count` pieces of `length` elements. The last piece may be shorter, and no piece is
 * empty.
 */
export interface Splits {
  readonly count: number;
  readonly length: number;
}

export const whole = ({ inner }: Product): Splits => ({ count: 1, length: inner });

/** Splits the inner dimension into about `wanted` pieces, each a multiple of `step` elements long. */
export const splitInner = ({ inner }: Product, wanted: number, step: number): Splits => {
  const length = Math.ceil(inner / wanted / step) * step;
  return { count: Math.ceil(inner / length), length };
};

const workgroupSize = 64;

/**
 * Adds the partial sums of a split product in a second pass: `y = Σ_s partial[s]`, for ascending s, so that the result
 * does not depend on the order of workgroups. Reads and writes 4·(splits + 1) bytes per element.
 */
export const sumPartialsPass = (product: Product, { count }: Splits): Pass => {
  const { batch, rows, columns, resultDtype } = product;
  const total = batch * rows * columns;
  const vectors = Math.ceil(total / 4);
  // Layers of partial sums start at multiples of four elements only if the layer size is divisible by four.
  const aligned = total % 4 === 0;
  const load = aligned
    ? "partial[s * sizes.vectors + at]"
    : `vec4<f32>(${[0, 1, 2, 3].map((i) => `partial[s * sizes.total + 4u * at + ${i}u]`).join(", ")})`;
  return {
    label: "matmul sum of splits",
    bindings: [
      { name: "partial", type: aligned ? "array<vec4<f32>>" : "array<f32>", source: { scratch: 0 }, access: "read" },
      { name: "y", type: `array<vec4<${resultDtype}>>`, source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil(vectors / workgroupSize),
    sizes: { splits: count, vectors, total },
    ...featuresOf({ ...product, dtype: "f32" }),
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let at = group * ${workgroupSize}u + lane;
        if (at >= sizes.vectors) { return; }
        var sum = vec4<f32>();
        for (var s = 0u; s < sizes.splits; s++) { sum += ${load}; }
        y[at] = vec4<${resultDtype}>(sum);
      }
    `,
  };
};

/**
 * Returns the plan of a product whose inner dimension is split: both passes, and the block of partial sums between
 * them.
 */
export const splitPlan = (product: Product, splits: Splits, pass: (splits: Splits) => Pass): KernelPlan =>
  splits.count === 1
    ? { passes: [pass(splits)] }
    : {
        scratch: [4 * splits.count * product.batch * product.rows * product.columns],
        passes: [pass(splits), sumPartialsPass(product, splits)],
      };
