import type { Pass } from "../../kernel.ts";
import { featuresOf, type MatmulVariant, type Product } from "./product.ts";
import { matrixSizes } from "./operands.ts";
import { wgsl } from "../../wgsl.ts";

const side = 16;

/**
 * Computes a product by tiles in workgroup memory, the textbook improvement over the naive variant. A workgroup with 16
 * × 16 invocations computes a 16 × 16 tile and loads the corresponding tiles of a and b, so each operand element is
 * read 16 times less often. This variant exists for comparison with the naive and the register-tiled variant. Padding
 * of rows avoids bank conflicts in transposed writes.
 */
export const tiledPass = (product: Product): Pass => {
  const { batch, rows, columns, transposeA, transposeB, dtype, resultDtype } = product;
  const [tilesM, tilesN] = [Math.ceil(rows / side), Math.ceil(columns / side)];
  const tile = `array<f32, ${side * (side + 1)}>`;
  // The fastest-varying index of a load runs along contiguous memory.
  const [aOuter, aInner] = transposeA ? ["x", "y"] : ["y", "x"];
  const [bOuter, bInner] = transposeB ? ["y", "x"] : ["x", "y"];
  return {
    label: "matmul tiled 16x16",
    bindings: [
      { name: "a", type: `array<${dtype}>`, source: { input: 0 }, access: "read" },
      { name: "b", type: `array<${dtype}>`, source: { input: 1 }, access: "read" },
      { name: "y", type: `array<${resultDtype}>`, source: { output: 0 }, access: "write" },
    ],
    workgroupSize: side * side,
    groups: batch * tilesM * tilesN,
    sizes: { ...matrixSizes(product), tiles_m: tilesM, tiles_n: tilesN },
    ...featuresOf(product),
    code: wgsl`
      var<workgroup> tile_a: ${tile};
      var<workgroup> tile_b: ${tile};
      fn main(group: u32, lane: u32) {
        let matrix = group / (sizes.tiles_m * sizes.tiles_n);
        let m0 = (group / sizes.tiles_n) % sizes.tiles_m * ${side}u;
        let n0 = group % sizes.tiles_n * ${side}u;
        let l = vec2<u32>(lane % ${side}u, lane / ${side}u);
        let base_a = matrix * sizes.rows * sizes.inner;
        let base_b = matrix * sizes.inner * sizes.columns;
        let m = m0 + l.${aOuter};
        let n = n0 + l.${bOuter};
        var sum = 0.0;
        for (var k0 = 0u; k0 < sizes.inner; k0 += ${side}u) {
          let ka = k0 + l.${aInner};
          let kb = k0 + l.${bInner};
          var from_a = 0.0;
          var from_b = 0.0;
          if (m < sizes.rows && ka < sizes.inner) { from_a = f32(a[base_a + ${transposeA ? "ka * sizes.rows + m" : "m * sizes.inner + ka"}]); }
          if (n < sizes.columns && kb < sizes.inner) { from_b = f32(b[base_b + ${transposeB ? "n * sizes.inner + kb" : "kb * sizes.columns + n"}]); }
          tile_a[l.${aOuter} * ${side + 1}u + l.${aInner}] = from_a;
          tile_b[l.${bInner} * ${side + 1}u + l.${bOuter}] = from_b;
          workgroupBarrier();
          for (var k = 0u; k < ${side}u; k++) { sum = fma(tile_a[l.y * ${side + 1}u + k], tile_b[k * ${side + 1}u + l.x], sum); }
          workgroupBarrier();
        }
        if (m0 + l.y < sizes.rows && n0 + l.x < sizes.columns) {
          y[(matrix * sizes.rows + m0 + l.y) * sizes.columns + n0 + l.x] = ${resultDtype}(sum);
        }
      }
    `,
  };
};

export const tiled: MatmulVariant = {
  name: "tiled-16x16",
  sums: "in order",
  supports: ({ inner }, { maxWorkgroupSize }) => inner > 0 && maxWorkgroupSize >= side * side,
  plan: (product) => ({ passes: [tiledPass(product)] }),
};
