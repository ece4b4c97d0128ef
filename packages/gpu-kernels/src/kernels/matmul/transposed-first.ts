import type { Pass } from "../../kernel.ts";
import { featuresOf, type MatmulVariant, type Product } from "./product.ts";
import { wgsl } from "../../wgsl.ts";

const side = 16;

/**
 * Transposes `x[batch, n, k] → xᵀ[batch, k, n]` by tiles in workgroup memory, so that both reads and writes use
 * complete cache lines. Padding of rows avoids bank conflicts between the columns of a tile. Reads and writes each
 * element once.
 */
export const transposePass = (product: Product): Pass => {
  const { batch, columns, inner, dtype } = product;
  const [tilesN, tilesK] = [Math.ceil(columns / side), Math.ceil(inner / side)];
  return {
    label: "matmul transpose of b",
    bindings: [
      { name: "x", type: `array<${dtype}>`, source: { input: 1 }, access: "read" },
      { name: "y", type: `array<${dtype}>`, source: { scratch: 0 }, access: "write" },
    ],
    workgroupSize: side * side,
    groups: batch * tilesN * tilesK,
    sizes: { columns, inner, tiles_n: tilesN, tiles_k: tilesK },
    ...featuresOf({ ...product, resultDtype: "f32" }),
    code: wgsl`
      var<workgroup> tile: array<${dtype}, ${side * (side + 1)}>;
      fn main(group: u32, lane: u32) {
        let matrix = group / (sizes.tiles_n * sizes.tiles_k);
        let n0 = (group / sizes.tiles_k) % sizes.tiles_n * ${side}u;
        let k0 = group % sizes.tiles_k * ${side}u;
        let fast = lane % ${side}u;
        let slow = lane / ${side}u;
        let base = matrix * sizes.columns * sizes.inner;
        if (n0 + slow < sizes.columns && k0 + fast < sizes.inner) { tile[slow * ${side + 1}u + fast] = x[base + (n0 + slow) * sizes.inner + k0 + fast]; }
        workgroupBarrier();
        if (n0 + fast < sizes.columns && k0 + slow < sizes.inner) { y[base + (k0 + slow) * sizes.columns + n0 + fast] = tile[fast * ${side + 1}u + slow]; }
      }
    `,
  };
};

/**
 * Returns a variant that computes NT as a transpose of b followed by NN (TNN in papers). Faster if variant `after`
 * reads columns of b much faster than rows, and the product takes long enough that the additional traffic of n · k
 * elements is negligible. Needs scratch memory of the size of b.
 */
export const transposedFirst = (after: MatmulVariant): MatmulVariant => ({
  name: `transpose-${after.name}`,
  sums: after.sums,
  supports: (product, facts) =>
    product.transposeB &&
    product.inner > 0 &&
    product.rows > 1 &&
    facts.maxWorkgroupSize >= side * side &&
    after.supports({ ...product, transposeB: false }, facts),
  plan: (product, facts) => {
    const { passes, scratch = [] } = after.plan({ ...product, transposeB: false }, facts);
    const bytes = (product.dtype === "f16" ? 2 : 4) * product.batch * product.inner * product.columns;
    const moved = (pass: Pass): Pass => ({
      ...pass,
      bindings: pass.bindings.map((binding) => {
        const { source } = binding;
        if ("input" in source && source.input === 1) return { ...binding, source: { scratch: 0 } };
        return "scratch" in source ? { ...binding, source: { scratch: source.scratch + 1 } } : binding;
      }),
    });
    return { scratch: [bytes, ...scratch], passes: [transposePass(product), ...passes.map(moved)] };
  },
});
