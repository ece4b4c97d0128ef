import type { Pass } from "../../kernel.ts";
import { featuresOf, type MatmulVariant, type Product } from "./product.ts";
import { matrixSizes } from "./operands.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;

/**
 * Computes the definition `y[m, n] = Σₖ a[m, k] · b[k, n]`, one invocation per element. Reference for tests of all
 * other variants. Supports empty sums.
 */
export const naivePass = (product: Product): Pass => {
  const { batch, rows, columns, transposeA, transposeB, dtype, resultDtype } = product;
  return {
    label: "matmul naive",
    bindings: [
      { name: "a", type: `array<${dtype}>`, source: { input: 0 }, access: "read" },
      { name: "b", type: `array<${dtype}>`, source: { input: 1 }, access: "read" },
      { name: "y", type: `array<${resultDtype}>`, source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil((batch * rows * columns) / workgroupSize),
    sizes: { ...matrixSizes(product), count: batch * rows * columns },
    ...featuresOf(product),
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let at = group * ${workgroupSize}u + lane;
        if (at >= sizes.count) { return; }
        let n = at % sizes.columns;
        let m = (at / sizes.columns) % sizes.rows;
        let matrix = at / (sizes.columns * sizes.rows);
        let from_a = matrix * sizes.rows * sizes.inner + ${transposeA ? "m" : "m * sizes.inner"};
        let from_b = matrix * sizes.inner * sizes.columns + ${transposeB ? "n * sizes.inner" : "n"};
        var sum = 0.0;
        for (var k = 0u; k < sizes.inner; k++) {
          sum = fma(f32(a[from_a + k${transposeA ? " * sizes.rows" : ""}]), f32(b[from_b + k${transposeB ? "" : " * sizes.columns"}]), sum);
        }
        y[at] = ${resultDtype}(sum);
      }
    `,
  };
};

export const naive: MatmulVariant = {
  name: "naive",
  sums: "in order",
  supports: () => true,
  plan: (product) => ({ passes: [naivePass(product)] }),
};
